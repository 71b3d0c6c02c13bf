"""Settings: each is declared once, with type, unit, default, range and help.

`declare`    what is declared of a setting, from which options, forms, checks and the reference follow
`tracking`   `TrackingSettings`: all that determines the result of `track`
`detection`  `DetectionSettings`: all that determines the result of `detect`
`keywords`   settings as keyword arguments
`costs`      costs of links: names, gates and boxes
`columns`    kinds of columns that help to link
`device`     which device computes
`fixed`      values that the user fixes, which are otherwise learned
"""

from .detection import DetectionSettings
from .tracking import TrackingSettings

__all__ = ["DetectionSettings", "TrackingSettings"]
