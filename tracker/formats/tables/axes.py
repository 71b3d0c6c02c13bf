"""Recognise the columns of z, y and x in a table by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...errors import InputError
from ...particles.calibration import Calibration
from ..files.units import LENGTHS

WORDS = (
    "position", "pos", "coordinate", "coord", "center", "centre", "centroid", "location", "loc", "positions",
    "coordinates", "coords", "centroids", "spot", "cell", "object", "particle", "point", "com",
    "centerofmass",
)  # fmt: skip
"""Words that may precede or follow the letter of an axis: ``position_x``, ``posX``, ``x_center``."""

SPECIAL: Mapping[str, str] = {
    "cell_row": "y", "cell_col": "x",
    **{f"object_center_{k}": axis for k, axis in enumerate("xyz")},
    **{f"center_of_the_object_{k}": axis for k, axis in enumerate("xyz")},
}  # fmt: skip
"""Column names of an axis that do not contain its letter."""

_UNIT = "|".join(sorted(map(re.escape, LENGTHS), key=len, reverse=True))
_IN_BRACKETS = re.compile(rf"(.*\S)\s*[\[(]\s*({_UNIT})\s*[\])]", re.IGNORECASE)
_WORD = f"(?:{'|'.join(WORDS)})"
_AXIS = re.compile(rf"({_WORD}+)?([xyz])((?(1)|{_WORD}*))({_UNIT})?", re.IGNORECASE)
_NAPARI = re.compile(r"axis-\d+")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_DEPTH = re.compile(
    r"z|z?(depth|slice|plane|section|height|layer|level|stack|elevation|altitude|focus)|[^dv]z"
    r"|z(.|index|idx|mean|median|step|val|value|coords?)"
)
"""Parts of column names that may mean z."""


class Coordinate(NamedTuple):
    """The axis, naming scheme and unit that the name of a coordinate column states."""

    axis: str
    """``z``, ``y`` or ``x``."""
    style: str
    """The name with ``*`` for the axis, without its unit."""
    unit: str | None
    """The unit's full name, if the name states it."""


def coordinate_of(name: str) -> Coordinate | None:
    """Parse the name of a coordinate column; None for any other name.

    Examples
    --------
    >>> coordinate_of("Position X"), coordinate_of("posZ")
    (Coordinate(axis='x', style='position*', unit=None), Coordinate(axis='z', style='pos*', unit=None))
    >>> coordinate_of("z [µm]") == coordinate_of("Z_um") == ("z", "*", "micrometer")
    True
    >>> coordinate_of("Location_Center_X").style
    'locationcenter*'
    >>> coordinate_of("size_z"), coordinate_of("x (s)")
    (None, None)
    """
    special = "_".join(name.lower().split())
    if special in SPECIAL:
        return Coordinate(SPECIAL[special], re.sub(r"_(\d|row|col)$", "_*", special), None)
    bracket = _IN_BRACKETS.fullmatch(name.strip())
    found = _AXIS.fullmatch(re.sub(r"[\s_-]+", "", bracket[1] if bracket else name))
    if found is None or (bracket and found[4]):
        return None
    unit = bracket[2] if bracket else found[4]
    style = f"{found[1] or ''}*{found[3] or ''}".lower()
    return Coordinate(found[2].lower(), style, LENGTHS[unit.lower()] if unit else None)


def axes_of(names: Sequence[str]) -> dict[str, str]:
    """The coordinate columns of a table, by axis.

    Columns with the same naming scheme form a set. Of several sets, the one with the most axes is chosen,
    then the one with the shortest names. An axis missing from it is taken from another set; see
    `mixed_styles`.

    Raises InputError if two names differ only in case, spaces or underscores.

    Examples
    --------
    >>> axes_of(["x", "y", "x_um", "y_um", "z_um"])
    {'z': 'z_um', 'y': 'y_um', 'x': 'x_um'}
    >>> axes_of(["t", "posZ", "y", "x"])
    {'z': 'posZ', 'y': 'y', 'x': 'x'}
    """
    sets: dict[tuple[str, str | None], dict[str, list[str]]] = {}
    for name in names:
        parsed = coordinate_of(name)
        if parsed is not None:
            sets.setdefault((parsed.style, parsed.unit), {}).setdefault(parsed.axis, []).append(name)
    best = sorted(sets, key=lambda style: (-len(sets[style]), len(style[0]), style[1] is not None))
    found: dict[str, str] = {}
    for axis in "zyx":
        holder = next((sets[style][axis] for style in best if axis in sets[style]), None)
        if holder is not None:
            found[axis] = _the_one(holder)
    return found or _numbered_axes(names)


def _the_one(spelled: Sequence[str]) -> str:
    """Of several columns for the same axis and scheme: the only one, or the one in lower case."""
    if len(spelled) == 1:
        return spelled[0]
    small = [name for name in spelled if name == "_".join(name.lower().split())]
    if len(small) == 1:
        return small[0]
    raise InputError(
        f"Columns {list(spelled)} differ in case, spaces or underscores only. Rename all but the one meant."
    )


def _numbered_axes(names: Sequence[str]) -> dict[str, str]:
    """The axes of numbered columns: ``axis-0``, … of napari, whose first is time, or ``centroid-0``, ….

    Examples
    --------
    >>> _numbered_axes(["frame", "centroid-0", "centroid-1"])
    {'y': 'centroid-0', 'x': 'centroid-1'}
    """
    for word, times in (("axis", 1), ("centroid", 0)):  # the latter are of scikit-image
        axes = [name for name in names if re.fullmatch(rf"{word}[-_]\d", name)]
        in_order = [name[-1] for name in axes] == [str(k) for k in range(len(axes))]
        if in_order and len(axes) - times in (2, 3) and "shape-type" not in names:
            return dict(zip("zyx"[3 - len(axes) + times :], axes[times:], strict=True))
    return {}


def frame_of_napari(axes: Mapping[str, str]) -> str | None:
    """The frame column that belongs to napari's axes; None for other axes."""
    return "axis-0" if _NAPARI.fullmatch(axes.get("x", "")) else None


def mixed_styles(axes: Mapping[str, str], given: Mapping[str, str]) -> str:
    """A warning if the axes follow different naming schemes, and so may differ in unit; else empty.

    The naming scheme of columns that the caller named (`given`) is not checked.

    Examples
    --------
    >>> mixed_styles({"z": "z_um", "y": "y_um", "x": "x_um"}, {})
    ''
    >>> print(mixed_styles({"z": "posZ", "y": "y", "x": "x"}, {}))
    'posZ' is named in another way than 'y' and 'x', and may be in another unit. \
If it is z: --columns z=posZ (Python: columns=); if there is no z: --columns z=
    >>> mixed_styles({"z": "posZ", "y": "y", "x": "x"}, {"z": "posZ"})
    ''
    """
    found = {axis: name for axis, name in axes.items() if axis not in given}
    styles: dict[object, list[str]] = {}
    for axis, name in found.items():
        parsed = coordinate_of(name)
        styles.setdefault(None if parsed is None else parsed[1:], []).append(axis)
    if len(styles) < 2 or not {"y", "x"} <= set(axes):
        return ""
    *others, most = sorted(styles.values(), key=len)
    odd = [axis for group in others for axis in group]
    named = _listed([axes[axis] for axis in odd])
    rest = _listed([axes[axis] for axis in most])
    are = "is" if len(odd) == 1 else "are"
    remedy = f"If {'it is' if len(odd) == 1 else 'they are'} {' and '.join(odd)}: --columns "
    remedy += ",".join(f"{axis}={axes[axis]}" for axis in odd) + " (Python: columns=)"
    if "z" in found:
        remedy += "; if there is no z: --columns z="
    units = [
        {parsed.unit for axis in group if (parsed := coordinate_of(axes[axis]))} for group in (odd, most)
    ]
    stated = [" and ".join(sorted(filter(None, each))) or "none stated" for each in units]
    which = f" ({stated[0]} beside {stated[1]})" if stated[0] != stated[1] else ""
    return f"{named} {are} named in another way than {rest}, and may be in another unit{which}. {remedy}"


def unused_axes(names: Iterable[str], axes: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """Columns that look like coordinates but are not used as axes; empty for axes that the caller named.

    Examples
    --------
    >>> unused_axes(["x", "y", "z_plane", "mass"], {"y": "y", "x": "x"}, {})
    ['z_plane']
    >>> unused_axes(["x", "y", "z_plane"], {"y": "y", "x": "x"}, {"z": ""})
    []
    """
    settled = {axis for axis in "zyx" if axis in given}
    found = []
    for name in names:
        parsed = coordinate_of(name)
        axis = parsed.axis if parsed is not None else "z" if "z" not in axes and _may_be_depth(name) else None
        if axis is not None and axis not in settled and name not in axes.values():
            found.append(name)
    return found


def unit_in_names(axes: Mapping[str, str]) -> tuple[str | None, dict[str, float]]:
    """The unit that the names of the columns of z, y, x state, and the factors of axes in another one.

    A column that the caller named, and that states none, is in that of x.

    Raises
    ------
    InputError
        If two units cannot be converted into each other.

    Examples
    --------
    >>> unit_in_names({"z": "z [µm]", "y": "y [µm]", "x": "x [µm]"}), unit_in_names({"z": "z_um", "x": "x"})
    (('micrometer', {}), (None, {}))
    >>> unit_in_names({"z": "z [nm]", "x": "x [µm]"})
    ('micrometer', {'z': 0.001})
    """
    stated = {axis: parsed.unit if (parsed := coordinate_of(name)) else None for axis, name in axes.items()}
    unit = stated.get("x")
    if unit is None:
        return None, {}
    factors = {axis: Calibration(each).factor(unit) for axis, each in stated.items() if each and each != unit}
    if None in factors.values():
        each = ", ".join(f"{axis} in {of}" for axis, of in stated.items())
        raise InputError(
            f"by their names columns are in several units ({each}). Convert them to one unit: multiply "
            "numbers of pixels by the size of a pixel."
        )
    return unit, {axis: factor for axis, factor in factors.items() if factor is not None}


def _may_be_depth(name: str) -> bool:
    return any(_DEPTH.fullmatch(part.lower()) for part in _PARTS.findall(name))


def _listed(names: Sequence[str]) -> str:
    """Format names as a list within a sentence."""
    quoted = [repr(name[:40]) for name in names[:6]] + (["others"] if len(names) > 6 else [])
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
