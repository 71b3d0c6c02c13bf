"""Measuring: from tracks to tables of motion, in micrometers and seconds, with errors that include linking.

`scales`       units, and positions without drift
`draws`        links drawn by their probabilities, and the different tracks in the draws
`paths`        lengths, speeds, shape and angles of single tracks; their steps without gaps
`likelihood`   the Gaussian likelihood of steps with localisation error and motion blur
`pooled`       motion of many tracks together
`single`       motion of single tracks
`families`     mothers, generations, cycle times; how safe links are
`groups`       means, curves and comparison of groups, by a bootstrap over tracks
`whole`        one movie or many: from tracks to all tables
`tables`       units of columns; files
"""

from .evaluate import Measures
from .whole import measure

__all__ = ["Measures", "measure"]
