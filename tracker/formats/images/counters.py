"""What the numbers in the file names of a folder of images count: frames, planes, channels or positions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError, SettingsError

WORDS: Mapping[str, tuple[str, ...]] = {
    "T": ("t", "tp", "time", "timepoint", "frame", "timelapse", "cycle"),
    "Z": ("z", "slice", "plane", "section", "focus", "depth", "zpos", "zplane"),
    "C": ("c", "ch", "chn", "chan", "channel", "w", "wv", "wave", "wavelength", "color", "colour"),
    "S": ("s", "scene", "series", "p", "pos", "position", "xy", "field", "f", "fov", "site", "point", "stage",
          "m", "tile", "well", "v", "view"),
}  # fmt: skip
"""Words before a number in a file name, by the axis that the number counts; S is a position, or scene."""

_MICROMANAGER = re.compile(r"img_(\d{9})_(.*)_(\d{3})")
_SHOWN = 6
_Row = tuple[int | str, ...]
"""What distinguishes a file from the others: numbers and words of its name."""


@dataclass(frozen=True)
class Arrangement:
    """The images of a folder by frame, channel, position and plane."""

    axes: str  # the counters, of TSCZ
    files: Mapping[tuple[int, int, int, int], Path]  # by frame, position, channel and plane, each from 0 up
    names: Mapping[str, tuple[str, ...]]  # what the files of each axis are called by, also of missing frames
    warnings: tuple[str, ...] = ()  # sentences about what was guessed

    def size(self, axis: str) -> int:
        """How many there are along an axis."""
        return len(self.names.get(axis, ("",)))

    def frames(self, scene: int, channel: int) -> tuple[tuple[Path, ...], ...]:
        """The planes of each frame; none for a frame that is missing.

        Raises InputError if some planes or channels of a frame are missing.
        """
        found = []
        for t in range(self.size("T")):
            planes = [self.files.get((t, scene, channel, z)) for z in range(self.size("Z"))]
            there = [plane for plane in planes if plane is not None]
            if len(there) < len(planes) and (there or any(place[0] == t for place in self.files)):
                place = {"T": t, "S": scene, "C": channel, "Z": planes.index(None)}
                what = ", ".join(f"{axis.lower()} {self.names[axis][place[axis]]}" for axis in self.axes)
                folder = next(iter(self.files.values())).parent
                raise InputError(f"{folder} has no image of {what}. Add it, or remove others of that frame.")
            found.append(tuple(there))
        return tuple(found)


def arranged(files: Sequence[Path], given: str | None = None) -> Arrangement:
    """Arrange images by the numbers in their names; several words in one place of the names are channels.

    A number counts what the word before it says. The only number that varies counts frames, unless it follows
    a word for planes or channels. A number that is missing is a missing frame.

    Parameters
    ----------
    files : sequence of Path
        Images of one folder, sorted.
    given : str, optional
        The counters as the caller names them, in the order of the names, of TSCZ.

    Raises InputError if several numbers vary and nothing says what they count.

    Examples
    --------
    >>> found = arranged([Path(f"a_t{t}_c{c}.tif") for t in (1, 2, 4) for c in (1, 2)])
    >>> found.axes, found.names["T"], [len(planes) for planes in found.frames(0, 1)]
    ('TC', ('1', '2', '3', '4'), [1, 1, 0, 1])
    """
    rows, roles, guessed = _counters(files)
    if not rows:
        numbers = tuple(map(str, range(len(files))))
        return Arrangement("T", {(t, 0, 0, 0): file for t, file in enumerate(files)}, {"T": numbers}, guessed)
    roles = _named(files[0].parent, rows, roles, given)
    names: dict[str, tuple[str, ...]] = {}
    by_place: dict[tuple[int, int, int, int], Path] = {}
    warnings = list(guessed)
    for axis, values in zip(roles, zip(*rows, strict=True), strict=True):
        names[axis], warning = _values(values, axis)
        warnings += warning
    for file, row in zip(files, rows, strict=True):
        at = {axis: names[axis].index(str(value)) for axis, value in zip(roles, row, strict=True)}
        where = at.get("T", 0), at.get("S", 0), at.get("C", 0), at.get("Z", 0)
        if where in by_place:
            raise InputError(f"{file} and {by_place[where].name} are of the same frame. Leave one out.")
        by_place[where] = file
    axes = "".join(axis for axis in "TSCZ" if axis in roles)
    if len(axes) > 1 and given is None:
        counted = ", ".join(f"{len(names[axis])} along {axis.lower()}" for axis in axes)
        warnings.append(
            f"By their names the files are {counted}. If not: --axes, with a letter for each number."
        )
    return Arrangement(axes, by_place, names, tuple(warnings))


def counts_scenes(files: Sequence[Path]) -> bool:
    """Whether the names of the files count positions, which are scenes."""
    return "S" in _counters(files)[1]


def main_pattern(files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The files whose names follow the pattern of most, and the others; all, if no pattern has most of them.

    Examples
    --------
    >>> main_pattern([Path("a1.tif"), Path("a2.tif"), Path("a3.tif"), Path("mean.tif")])[1]
    [PosixPath('mean.tif')]
    """
    patterns = Counter(map(_pattern, files))
    (most, count), *others = patterns.most_common()
    few = sum(number for _, number in others if number * 2 < count)
    if count < 3 or few != len(files) - count:
        return list(files), []
    return [f for f in files if _pattern(f) == most], [f for f in files if _pattern(f) != most]


def _pattern(file: Path) -> tuple[str, ...]:
    return tuple(re.split(r"\d+", file.stem.lower()))


def _counters(files: Sequence[Path]) -> tuple[list[_Row], list[str], tuple[str, ...]]:
    """What distinguishes each file; for each of these the axis, or a blank; and warnings."""
    if len(files) < 2:
        return [], [], ()
    parts = [re.split(r"(\d+)", file.stem) for file in files]
    if len({len(part) for part in parts}) > 1:
        return [], [], (_several(files),)
    if all(_MICROMANAGER.fullmatch(file.stem) for file in files):
        found = [_MICROMANAGER.fullmatch(file.stem) for file in files]
        rows: list[_Row] = [(int(each[1]), each[2], int(each[3])) for each in found if each]
        return (*_that_vary(rows, ["T", "C", "Z"]), ())
    words = [at for at in range(0, len(parts[0]), 2) if len({part[at].lower() for part in parts}) > 1]
    numbers: list[_Row] = [tuple(int(each) for each in part[1::2]) for part in parts]
    roles = _roles_of(parts[0][:-1:2])
    if not words:
        return (*_that_vary(numbers, roles), ())
    named = [tuple(part[at].strip("_-. ").lower() for at in words) for part in parts]
    groups = {
        name: {row for row, other in zip(numbers, named, strict=True) if other == name} for name in named
    }
    if len({frozenset(group) for group in groups.values()}) > 1 or len(next(iter(groups.values()))) < 2:
        return [], [], (_several(files),)
    rows = [(*row, "".join(name)) for row, name in zip(numbers, named, strict=True)]
    return (*_that_vary(rows, [*roles, "C"]), ())


def _several(files: Sequence[Path]) -> str:
    return (
        f"The names follow no one pattern ({files[0].name}, {files[-1].name}): they are frames in this order."
    )


def _roles_of(texts: Sequence[str]) -> list[str]:
    """The axis of each number by the word before it; W beside C is a well, and F without T a frame."""
    words = [re.sub(r".*[^A-Za-z]", "", text).lower() for text in texts]
    roles = [next((axis for axis, known in WORDS.items() if word in known), "") for word in words]
    if roles.count("C") > 1:
        roles = ["S" if word == "w" else role for word, role in zip(words, roles, strict=True)]
    if "T" not in roles:
        roles = ["T" if word == "f" else role for word, role in zip(words, roles, strict=True)]
    return roles


def _that_vary(rows: list[_Row], roles: list[str]) -> tuple[list[_Row], list[str]]:
    """The columns that vary, without those that say nothing new, such as a time of day beside a frame."""
    count = len(rows)
    columns = [[row[at] for row in rows] for at in range(len(roles))]
    kept = [at for at in range(len(roles)) if len({*columns[at]}) > 1]
    alone = [at for at in kept if len({*columns[at]}) == count]
    if alone:
        order = {"T": 0, "Z": 1, "C": 2, "": 3, "S": 4}
        kept = [min(alone, key=lambda at: (order[roles[at]], -at))]
        role = roles[kept[0]]
        return [(row[kept[0]],) for row in rows], [role if role in ("Z", "C") else "T"]
    for at in [at for at in kept if not roles[at]]:
        others = [other for other in kept if other != at]
        if len(set(zip(*[columns[other] for other in others], strict=True))) == count:
            kept = others
    return [tuple(row[at] for at in kept) for row in rows], [roles[at] for at in kept]


def _named(folder: Path, rows: list[tuple[int | str, ...]], roles: list[str], given: str | None) -> list[str]:
    """The axis of each counter."""
    if given is not None:
        if len(given) != len(roles) or len({*given}) != len(given) or {*given} - {*"TSCZ"}:
            raise SettingsError(
                f"axes begin with {given!r}, and in the names of the files in {folder} {len(roles)} numbers "
                "vary. Give one of T, S, C, Z for each."
            )
        return list(given)
    free = [at for at, role in enumerate(roles) if not role]
    if len(free) == 1 and "T" not in roles:
        roles = ["T" if at in free else role for at, role in enumerate(roles)]
    if "" in roles or len({*roles}) < len(roles):
        shown = " and ".join(f"{min(of)} to {max(of)}" for of in zip(*rows, strict=True))
        raise InputError(
            f"{folder}: {len(roles)} numbers vary in the names of the files ({shown}), and nothing says what "
            "they count. Name them before the axes of a file, in order: --axes TZYX for times and planes."
        )
    return roles


def _values(values: Sequence[int | str], axis: str) -> tuple[tuple[str, ...], list[str]]:
    """The names along an axis, with the numbers that are missing between frames; and what to say of these."""
    if not all(isinstance(value, int) for value in values):
        return tuple(dict.fromkeys(map(str, values))), []
    there = sorted({int(value) for value in values})
    step = math.gcd(*(after - before for before, after in zip(there, there[1:], strict=False)))
    if axis != "T" or len(there) < 2 or (there[-1] - there[0]) // step + 1 == len(there):
        return tuple(map(str, there)), []
    count = (there[-1] - there[0]) // step + 1
    if count > 2 * len(there):  # such numbers do not count frames
        return tuple(map(str, there)), [
            f"Most numbers from {there[0]} to {there[-1]} are missing: the files are frames in this order."
        ]
    every = range(there[0], there[-1] + 1, step)
    lost = sorted({*every} - {*there})
    listed = ", ".join(map(str, lost[:_SHOWN])) + (", …" if len(lost) > _SHOWN else "")
    return tuple(map(str, every)), [
        f"No file has the number {listed}: {len(lost)} frames are missing, and empty."
    ]
