"""Units of length and time: their full names, and the abbreviations that files use."""

from __future__ import annotations

_FULL = {
    "um": "micrometer", "µm": "micrometer", "μm": "micrometer", "micron": "micrometer",
    "microns": "micrometer", "px": "pixel", "pixels": "pixel", "nm": "nanometer", "mm": "millimeter",
}  # fmt: skip
_SPELLED = {
    **{f"{of}met{end}": f"{of}meter" for of in ("micro", "nano", "milli") for end in ("ers", "re", "res")},
    **dict.fromkeys(("pix", "vox", "voxel", "voxels"), "pixel"),
}
"""Further spellings of units in column names."""

LENGTHS = {name: name for name in {*_FULL.values(), *_SPELLED.values()}} | _FULL | _SPELLED
"""Full names of units by their spellings in column names."""

TIMES = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("frame", "frames"), 0.0),
}  # fmt: skip
"""Seconds in each unit of time by its spellings; 0 for frames."""

MICROMETRES = 1e6
"""In a metre, the unit in which microscopes' files state the size of a voxel."""


def unit_of(given: str | None) -> str:
    """The unit's full name in the singular; pixel if none is given.

    Examples
    --------
    >>> unit_of("µm"), unit_of(None), unit_of("inch")
    ('micrometer', 'pixel', 'inch')
    """
    return _FULL.get(given, given) if given else "pixel"
