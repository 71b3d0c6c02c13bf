"""Recognise the columns of a table by the names that Outbid and other tracking software use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...errors import InputError, SettingsError
from ...particles.tracks import LINK_MEASURES
from ..files.units import LENGTHS, TIMES
from .axes import SPECIAL, WORDS, axes_of, frame_of_napari

_AXES = {
    axis: (axis, *(f"{word}_{axis}" for word in WORDS), *(name for name, of in SPECIAL.items() if of == axis))
    for axis in "zyx"
}
_TRACK = ("track", "particle", "trajectory", "traj", "tracklet", "spot_track", "trackmate_track")
ALIASES: Mapping[str, tuple[str, ...]] = {
    "frame": (
        "frame", "frames", "frame_number", "frame_index", "frame_idx", "frame_id", "frame_ix", "frame_i",
        "frame_n", "frame_no", "frame_nr", "frame_num", "spot_frame", "image_number", "time_index",
        "time_point", "timepoint", "time_points", "timepoints", "time_frame", "timeframe", "time_step",
        "timestep", "t", "time", "times", "position_t",
    ),
    **_AXES,
    "track_id": (
        "track_id", "trackid", "track", "particle", "trajectory", "tracklet_id", "id_of_track",
        *(f"{word}_{end}" for word in _TRACK for end in ("id", "number", "index", "idx", "no", "nr", "n")),
        "tracks", "particles", "trajectories", "tracklet", "traj", "tid", "trackobjects_label",
    ),
    "parent": (
        "parent", "parent_track_id", "parent_trackid", "parent_track", "track_parent", "parent_tracklet_id",
        "mother_track_id", "parent_id", "parentid",
    ),
}  # fmt: skip
"""Names of the column for each role, as `plain` spells them, preferred first; for z, y, x see `axes`."""

CELLS: Mapping[str, tuple[str, ...]] = {
    "id": ("parent_id", "parentid"), "node_id": ("parent_node_id", "parent_id"),
    "spot_id": ("parent_spot_id", "parent_id"), "cell_id": ("parent_cell_id", "mother_cell_id", "parent_id"),
    "object_id": ("parent_object_id", "parent_id"),
}  # fmt: skip
"""Names of a column that numbers detections, and of the one beside it that names the number of a parent."""

NEEDED = ("frame", "y", "x")
"""Roles that every table of detections needs; without z, the detections are 2D."""

_NUMBERED = re.compile(rf"(parent|{'|'.join(LINK_MEASURES)})(_[2-9]|_[1-9]\d+)?")
_NAMELESS = re.compile(r"\s*|unnamed: \d+(\.\d+)*|(__index_)?level_\d+(__)?", re.IGNORECASE)  # of pandas
_UNIT = re.compile(rf"[\[(]({'|'.join(map(re.escape, [*LENGTHS, *TIMES]))}|#|n°|a\.?u\.?)[\])]$")
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
_GIVEN = re.compile(rf"\s*({'|'.join(ALIASES)})\s*=")
_SHARE = re.compile(r"\s*\d+(\.\d+)?\s*")
AS_NAMED: Mapping[str, str] = {}
"""The caller named no columns; all are recognised by name."""


def plain(name: str) -> str:
    """The name in lower case, its words joined by underscores, without quotes and without a unit in brackets.

    Examples
    --------
    >>> plain(" Position X"), plain("TRACK_ID"), plain("parentTrackId"), plain("t [sec]"), plain("Track N°")
    ('position_x', 'track_id', 'parent_track_id', 't', 'track_n')
    """
    words = _WORD_BEGINS.sub("_", name.strip().strip("\"'"))
    return re.sub(r"[^\w()\[\]]+|_+", "_", _UNIT.sub("", words.lower().strip()).replace("°", " ")).strip("_ ")


def seconds_in_name(name: str) -> float:
    """Seconds in the unit of time that a name states in brackets; 0 if it states none, or frames.

    Examples
    --------
    >>> seconds_in_name("t [min]"), seconds_in_name("t [frame]"), seconds_in_name("x [µm]")
    (60.0, 0.0, 0.0)
    """
    unit = _UNIT.search(name.strip().lower())
    return TIMES.get(unit[1], 0.0) if unit else 0.0


def is_nameless(name: str) -> bool:
    """Whether a column has no name of its own, such as a row index."""
    return _NAMELESS.fullmatch(name) is not None


def columns_from(texts: Iterable[str]) -> dict[str, str]:
    """Parse columns by role from texts of the form ``role=name,role=name``.

    Raises SettingsError if a text has another form, or a role or column occurs twice.

    Examples
    --------
    >>> columns_from(["z=pos, z,y=pos, y", "parent="])
    {'z': 'pos, z', 'y': 'pos, y', 'parent': ''}
    """
    found: dict[str, str] = {}
    for text in texts:
        matches = [
            match for match in _GIVEN.finditer(text) if match.start() == 0 or text[match.start() - 1] == ","
        ]
        if not matches or matches[0].start():
            raise SettingsError(
                f"Columns {text!r} must be ROLE=NAME, several with commas between: z=posZ,y=posY. "
                f"Roles are {', '.join(ALIASES)}."
            )
        ends = [match.start() - 1 for match in matches[1:]] + [len(text)]
        for match, end in zip(matches, ends, strict=True):
            if match[1] in found:
                raise SettingsError(
                    f"Columns {text!r}: {match[1]} has a column already. Name one for each role."
                )
            found[match[1]] = text[match.end() : end].strip()
    return checked_columns(found)


def text_of_columns(columns: Mapping[str, str]) -> str:
    """Format columns as the text that `columns_from` parses.

    Examples
    --------
    >>> text_of_columns({"z": "posZ", "parent": ""})
    'z=posZ,parent='
    """
    return ",".join(f"{role}={name}" for role, name in columns.items())


def checked_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Check the columns that a caller named.

    None names none. Raises SettingsError if they are no mapping of names, a role is unknown, or two roles
    have the same column.
    """
    columns = AS_NAMED if columns is None else columns
    if not isinstance(columns, Mapping) or not all(isinstance(name, str) for name in columns.values()):
        raise SettingsError(
            f"columns is {columns!r}; it must name the column of each role: {{'x': 'posX', 'y': 'posY'}}."
        )
    unknown = [role for role in columns if role not in ALIASES]
    if unknown:
        raise SettingsError(f"No column is a {unknown[0]!r}. Name those of {', '.join(ALIASES)}.")
    twice = [name for name, count in Counter(filter(None, columns.values())).items() if count > 1]
    if twice:
        raise SettingsError(
            f"Column {twice[0]!r} is named for several of {', '.join(columns)}. Give one each."
        )
    return dict(columns)


def roles_of(names: Sequence[str], given: Mapping[str, str] = AS_NAMED) -> dict[str, str]:
    """The column for each role that the table has: ``{"frame": "FRAME", "x": "POSITION_X", …}``.

    Further roles are those of `LINK_MEASURES`; ``parent_2``, ``link_cost_2`` and so on for the second link to
    the same detection (a merge); and ``node`` with ``node_parent`` in tables in which each detection has a
    number and names the number of its predecessor.

    Parameters
    ----------
    names : sequence of str
        All columns.
    given : mapping of str to str
        Columns by role that the caller named; an empty name means that there is no such column.

    Raises
    ------
    InputError
        If two columns have the same name, or names that `plain` spells alike; or if a column that the caller
        named does not exist.

    Examples
    --------
    >>> roles_of(["Position X", "Position Y", "Time", "Parent", "ID"])
    {'frame': 'Time', 'y': 'Position Y', 'x': 'Position X', 'track_id': 'Parent'}
    >>> roles_of(["ID", "t", "x", "y", "z", "parent", "root"])["track_id"]
    'ID'
    >>> roles_of(["t", "y", "x", "id", "parent_id"])
    {'frame': 't', 'y': 'y', 'x': 'x', 'node': 'id', 'node_parent': 'parent_id'}
    >>> roles_of(["ID", "Parent ID", "Time", "y", "x", "Tracklet ID"])["node_parent"]
    'Parent ID'
    >>> roles_of(["t", "y", "x", "up"], {"z": "up", "x": "y", "y": "x"})
    {'frame': 't', 'z': 'up', 'x': 'y', 'y': 'x'}
    """
    twice = [name for name, count in Counter(names).items() if count > 1 and not is_nameless(name)]
    if twice:
        raise InputError(f"Several columns are called {twice[0]!r}, and differ. Give each a name of its own.")
    given = {role: _column_given(name, role, names) if name else "" for role, name in given.items()}
    free = [name for name in names if name not in given.values()]
    by_plain: dict[str, list[str]] = {}
    for name in free:
        by_plain.setdefault(plain(name), []).append(name)
    roles = {}
    axes = {axis: name for axis, name in axes_of(free).items() if axis not in given}
    for role, aliases in ALIASES.items():
        if role in axes:
            roles[role] = axes[role]
        elif role not in _AXES and role not in given:
            found = next(filter(None, [_column_called(alias, by_plain) for alias in aliases]), None)
            roles |= {role: found} if found is not None else {}
    frame = frame_of_napari(axes)
    if frame is not None and "frame" not in given:
        roles["frame"] = frame
    if "parent" not in given and "track_id" not in given:
        _read_parents(roles, by_plain)
    roles |= {name: name for name in free if _NUMBERED.fullmatch(name) and name != "parent"}
    return roles | {role: name for role, name in given.items() if name}


def alike(names: Sequence[str]) -> dict[str, list[int]]:
    """Places of columns that have the same name, or one of our names in several spellings.

    Examples
    --------
    >>> alike(["frame", "x", "Frame", "mass", "x"])
    {'frame': [0, 2], 'x': [1, 4]}
    """
    ours = {alias for aliases in ALIASES.values() for alias in aliases}
    indices: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        if not is_nameless(name):
            indices.setdefault(plain(name) if plain(name) in ours else name, []).append(at)
    return {name: each for name, each in indices.items() if len(each) > 1}


def divided(name: str, names: Sequence[str]) -> tuple[str, float]:
    """A column and what its values are divided by, of a text such as ``time/30``; 1 for the name of a column.

    Examples
    --------
    >>> divided("time/30", ["time"]), divided("a/2", ["a/2"])
    (('time', 30.0), ('a/2', 1.0))
    """
    head, stroke, tail = name.rpartition("/")
    if stroke and name not in names and (_SHARE.fullmatch(tail) and float(tail) > 0):
        return head.strip(), float(tail)
    return name, 1.0


def _column_given(name: str, role: str, names: Sequence[str]) -> str:
    """The column with this name, or else with nearly this name."""
    name = divided(name, names)[0] if role == "frame" else name
    like = [other for other in names if plain(other) == plain(name)]
    if name in names or len(like) == 1:
        return name if name in names else like[0]
    raise InputError(f"There is no column {name!r} for {role} among {_shown(names)}. Name one of these.")


def _column_called(alias: str, by_plain: Mapping[str, list[str]]) -> str | None:
    """The column with this name, whatever its case, spaces and underscores."""
    spelled = by_plain.get(alias, [])
    if alias in spelled:
        return alias
    if len(spelled) <= 1:
        return next(iter(spelled), None)
    raise InputError(
        f"Columns {spelled} differ in case or spaces only, and in content. Name the one meant {alias!r}."
    )


def _read_parents(roles: dict[str, str], by_plain: Mapping[str, list[str]]) -> None:
    """Decide whether a column of parents names tracks or single detections: programs differ in that."""
    first = {name: columns[0] for name, columns in by_plain.items()}
    if "position_x" in first and "parent" in roles:  # in tables of Imaris, the parent of a spot is its track
        parent = roles.pop("parent")
        roles.setdefault("track_id", parent)
    if "track_id" not in roles and {"id", "root", "parent"} <= first.keys():  # btrack's ID is the track's
        roles["track_id"] = first["id"]
    of_tracks = "parent" in roles and plain(roles["parent"]) not in ("parent_id", "parentid")
    for cell, parents in CELLS.items():
        beside = next((first[name] for name in parents if name in first), None)
        if cell in first and beside is not None and not of_tracks:
            roles.pop("parent", None)
            roles |= {"node": first[cell], "node_parent": beside}
            return


def feature_names(names: Iterable[str], roles: Mapping[str, str]) -> list[str]:
    """Columns that become features: without a role, with a name, and without track numbers.

    Examples
    --------
    >>> names = ["id", "frame", "time", "x", "y", "particle", "mass", "link_cost"]
    >>> feature_names(names, roles_of(names))
    ['id', 'time', 'mass']
    """
    kept = {name for role, name in roles.items() if role != "node"}
    # A second column of track numbers must not become a feature: features may influence the links.
    of_cells = {name for names in CELLS.values() for name in names}
    identity = {*ALIASES["track_id"], *ALIASES["parent"], *of_cells}
    # Nor may a column with one of our names that is not in use, nor the row numbers of napari.
    other = {"frame", "z", "y", "x"} if roles else set()
    other |= {"index"} if frame_of_napari(roles) else set()
    dropped = kept | other
    return [n for n in names if n not in dropped and plain(n) not in identity and not is_nameless(n)]


def missing_roles(roles: Mapping[str, str], names: Sequence[str]) -> str:
    """A message naming the columns that a table of detections lacks; empty if it lacks none.

    Examples
    --------
    >>> print(missing_roles({"x": "x"}, ["x", "mass"]))
    No column for frame (frame, t, time, …) or y (y, position_y, …) among 'x', 'mass'. Rename the columns, \
or name them: --columns frame=NAME,y=NAME (Python: columns=).
    """
    lacking = [role for role in NEEDED if role not in roles]
    if not lacking:
        return ""
    usual = {"frame": "frame, t, time", "y": "y, position_y", "x": "x, position_x"}
    asked = " or ".join(f"{role} ({usual[role]}, …)" for role in lacking)
    names_for = ",".join(f"{role}=NAME" for role in lacking)
    return (
        f"No column for {asked} among {_shown(names)}. "
        f"Rename the columns, or name them: --columns {names_for} (Python: columns=)."
    )


def _shown(names: Sequence[str]) -> str:
    """The column names of a table for a message, at most the first few."""
    return ", ".join(repr(name[:40]) for name in names[:12]) + (", …" if len(names) > 12 else "")
