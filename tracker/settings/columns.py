"""Kinds of columns that help to link, as settings name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import SettingsError

KINDS = ("number", "angle=PERIOD", "label", "vector", "none")
"""Kinds of columns; with none, a column of `outbid detect` is not used."""

REFUSED = (
    "frame", "t", "time", "timepoint", "z", "y", "x", "position_z", "position_y", "position_x", "position_0",
    "position_1", "position_2", "track_id", "track", "id", "seg_id", "spot_id", "node", "label", "parent",
    "parent_id", "lineage", "lineage_id", "particle",
)  # fmt: skip
"""Names of ids, frames and coordinates."""


def columns_of(texts: Iterable[str]) -> dict[str, str]:
    """Parse columns NAME or NAME:KIND; without a kind, the values decide.

    >>> columns_of(["area", "theta:angle=180", "emb_*:vector", "a:b"])
    {'area': '', 'theta': 'angle=180', 'emb_*': 'vector', 'a:b': ''}
    """
    found = {}
    for text in texts:
        name, _, kind = text.rpartition(":")
        known = bool(name) and (kind in KINDS or kind.startswith("angle="))
        found[name if known else text] = kind if known else ""
    return found


def texts_of(column: Mapping[str, str]) -> list[str]:
    """Format columns as the texts that `columns_of` parses.

    >>> texts_of({"area": "", "theta": "angle=180"})
    ['area', 'theta:angle=180']
    """
    return [f"{name}:{kind}" if kind else name for name, kind in column.items()]


def check_columns(column: Mapping[str, str] | str | None) -> None:
    """Check names and kinds of columns.

    >>> check_columns({"track_id": "number"})
    Traceback (most recent call last):
    outbid.errors.SettingsError: Column 'track_id' has the name of an id, a frame or a coordinate: it cannot \
help to link. If it is something else, rename it.
    """
    if column is None or (isinstance(column, str) and column == "auto"):
        return
    if not isinstance(column, Mapping) or not all(
        isinstance(one, str) for one in (*column, *column.values())
    ):
        raise SettingsError(
            f"features is {column!r}; it must be 'auto', None or a mapping of names to kinds."
        )
    for name, kind in column.items():
        if name.lower() in REFUSED:
            raise SettingsError(
                f"Column {name!r} has the name of an id, a frame or a coordinate: it cannot help to link. "
                "If it is something else, rename it."
            )
        if kind and (kind not in KINDS or "=" in kind) and not period_of(kind) > 0:
            raise SettingsError(f"Column {name!r} is of kind {kind!r}. Choose from: {', '.join(KINDS)}.")


def period_of(kind: str) -> float:
    """The period of an angle; 0 for all other kinds."""
    try:
        return float(kind.removeprefix("angle=") if kind.startswith("angle=") else 0)
    except ValueError:
        return 0.0
