"""Units of length: their full names, and the abbreviations that files use."""

from __future__ import annotations

_FULL = {
    "um": "micrometer", "µm": "micrometer", "μm": "micrometer", "micron": "micrometer",
    "microns": "micrometer",
    "px": "pixel", "pixels": "pixel", "nm": "nanometer", "mm": "millimeter",
}  # fmt: skip
_SPELLED = {
    "micrometers": "micrometer", "micrometre": "micrometer", "micrometres": "micrometer", "pix": "pixel",
    "nanometers": "nanometer", "nanometre": "nanometer", "nanometres": "nanometer",
    "millimeters": "millimeter", "millimetre": "millimeter", "millimetres": "millimeter",
    "vox": "pixel", "voxel": "pixel", "voxels": "pixel",
}  # fmt: skip
"""Further spellings of units in column names."""

LENGTHS = {name: name for name in {*_FULL.values(), *_SPELLED.values()}} | _FULL | _SPELLED
"""Full names of units by their spellings in column names."""


def unit_of(given: str | None) -> str:
    """The unit's full name in the singular; pixel if none is given.

    Examples
    --------
    >>> unit_of("µm"), unit_of(None), unit_of("inch")
    ('micrometer', 'pixel', 'inch')
    """
    return _FULL.get(given, given) if given else "pixel"
