"""Settings: each is declared once, with type, unit, default, range and help.

`declare`    the declaration of a setting; options, forms, checks and the reference are made from it
`tracking`   `TrackingSettings`: all settings that determine the result of `track`
`detection`  `DetectionSettings`: all settings that determine the result of `detect`
`keywords`   settings as keyword arguments
`costs`      costs of links: names, gates and boxes
`columns`    kinds of columns that help to link
`device`     which device computes
`fixed`      values that the user fixes instead of learning them
"""

from .detection import DetectionSettings
from .tracking import TrackingSettings

__all__ = ["DetectionSettings", "TrackingSettings"]
