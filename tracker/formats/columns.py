"""Which column of a table is which: our own names, and those of other tracking software."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..errors import InputError
from ..tracks import LINK_MEASURES

ALIASES: Mapping[str, tuple[str, ...]] = {
    "frame": ("frame", "t", "time", "time_point", "timepoint", "position_t", "time_index"),
    "z": ("z", "position_z", "pos_z"),
    "y": ("y", "position_y", "pos_y", "cell_row"),
    "x": ("x", "position_x", "pos_x", "cell_col"),
    "track_id": ("track_id", "trackid", "track", "particle", "trajectory", "tracklet_id", "id_of_track"),
    "parent": ("parent", "parent_track_id", "parent_track", "parent_id"),
}
"""Names that each role goes by, the preferred one first, as `plain` spells them."""

NEEDED = ("frame", "y", "x")
"""Roles without which there are no detections; without z they lie in a plane."""

_NUMBERED = re.compile(rf"(parent|{'|'.join(LINK_MEASURES)})(_[2-9]|_[1-9]\d+)?")
_NAMELESS = re.compile(r"\s*|unnamed: \d+", re.IGNORECASE)  # the latter is pandas' index


def plain(name: str) -> str:
    """The name in lower case, with underscores for spaces.

    Examples
    --------
    >>> plain(" Position X"), plain("TRACK_ID")
    ('position_x', 'track_id')
    """
    return "_".join(name.lower().split())


def is_nameless(name: str) -> bool:
    """Whether a column has no name of its own, such as a row index."""
    return _NAMELESS.fullmatch(name) is not None


def roles_of(names: Sequence[str]) -> dict[str, str]:
    """The column for each role that the table has: ``{"frame": "FRAME", "x": "POSITION_X", …}``.

    Besides the roles of `ALIASES` there are those of `LINK_MEASURES`; ``parent_2``,
    ``link_cost_2`` and so on for the second link that reaches a detection (a merge); and ``node`` with
    ``node_parent`` where every detection has a number and names the one before it.

    Raises
    ------
    InputError
        If two columns have the same name, or names that differ in case or spaces only.

    Examples
    --------
    >>> roles_of(["Position X", "Position Y", "Time", "Parent", "ID"])
    {'frame': 'Time', 'y': 'Position Y', 'x': 'Position X', 'track_id': 'Parent'}
    >>> roles_of(["ID", "t", "x", "y", "z", "parent", "root"])["track_id"]
    'ID'
    >>> roles_of(["t", "y", "x", "id", "parent_id"])
    {'frame': 't', 'y': 'y', 'x': 'x', 'node': 'id', 'node_parent': 'parent_id'}
    """
    twice = [name for name, count in Counter(names).items() if count > 1 and not is_nameless(name)]
    if twice:
        raise InputError(f"Several columns are called {twice[0]!r}. Give each a name of its own.")
    by_plain: dict[str, list[str]] = {}
    for name in names:
        by_plain.setdefault(plain(name), []).append(name)

    def column(alias: str) -> str | None:
        spelled = by_plain.get(alias, [])
        if alias in spelled:
            return alias
        if len(spelled) <= 1:
            return next(iter(spelled), None)
        raise InputError(
            f"Columns {spelled} differ in case or spaces only. Name the one that is meant {alias!r}."
        )

    roles = {}
    for role, aliases in ALIASES.items():
        found = [name for name in map(column, aliases) if name is not None]
        if found:
            roles[role] = found[0]
    if "Position X" in names and "parent" in roles:  # in Imaris' tables the parent of a spot is its track
        parent = roles.pop("parent")
        roles.setdefault("track_id", parent)
    if "track_id" not in roles and {"id", "root", "parent"} <= set(
        by_plain
    ):  # in btrack's the ID is a track's
        roles["track_id"] = by_plain["id"][0]
    if roles.get("parent") == "parent_id" and "id" in names:
        del roles["parent"]
        roles |= {"node": "id", "node_parent": "parent_id"}
    roles |= {name: name for name in names if _NUMBERED.fullmatch(name) and name != "parent"}
    return roles


def feature_names(names: Iterable[str], roles: Mapping[str, str]) -> list[str]:
    """Columns that say something of a detection besides where it is: no role, no identity, no nameless one.

    Examples
    --------
    >>> names = ["id", "frame", "time", "x", "y", "particle", "mass", "link_cost"]
    >>> feature_names(names, roles_of(names))
    ['id', 'time', 'mass']
    """
    kept = {name for role, name in roles.items() if role != "node"}
    # A second column of track numbers must not pass as a feature: what is known of identities is no hint.
    identity = {*ALIASES["track_id"], *ALIASES["parent"]}
    return [n for n in names if n not in kept and plain(n) not in identity and not is_nameless(n)]


def missing_roles(roles: Mapping[str, str], names: Sequence[str]) -> str:
    """A sentence on what a table lacks to be read as detections; empty if it lacks nothing.

    Examples
    --------
    >>> print(missing_roles({"x": "x"}, ["x", "mass"]))
    No column for frame (frame, t, time, …) or y (y, position_y, …) among 'x', 'mass'. Rename the columns.
    """
    lacking = [role for role in NEEDED if role not in roles]
    if not lacking:
        return ""
    asked = " or ".join(
        f"{role} ({', '.join(ALIASES[role][: 2 if role in 'xy' else 3])}, …)" for role in lacking
    )
    seen = ", ".join(repr(name[:40]) for name in names[:12]) + (", …" if len(names) > 12 else "")
    return f"No column for {asked} among {seen}. Rename the columns."
