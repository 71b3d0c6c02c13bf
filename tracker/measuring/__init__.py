"""Measuring: from tracks to tables of motion, in micrometers and seconds, with errors that include linking.

`scales`       units, and positions without drift
`times`        times of frames, where they are irregular
`draws`        links drawn by their probabilities, and the different tracks in the draws
`paths`        lengths, speeds, shape and angles of single tracks; their steps without gaps
`likelihood`   the Gaussian likelihood of steps with localisation error and motion blur
`pooled`       motion of many tracks together
`single`       motion of single tracks
`families`     mothers, generations, cycle times; how safe links are
`choice`       the motion that explains the steps of a group best, by BIC
`groups`       means of groups, by a bootstrap over tracks and movies
`replicates`   conditions of several movies; conditions compared
`edge`         intervals of persistence times, which may be 0
`curves`       mean square displacement with its fit, autocorrelation, distributions
`labels`       group and movie of each detection, by files or columns
`recording`    what all measures are made of
`evaluate`     all tables of a recording
`measures`     the tables
`whole`        one movie or many: from tracks to all tables
`tables`       units of columns; files
"""

from .measures import Measures
from .surroundings import Surroundings
from .whole import measure

__all__ = ["Measures", "Surroundings", "measure"]
