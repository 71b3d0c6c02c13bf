"""Columns that help to link: those that `outbid detect` wrote, and those that the user names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compute.tolerances import PRIOR
from ..errors import SettingsError
from ..geometry.neighbours import nearest
from ..settings.columns import period_of
from .model.features import Features
from .model.movie import NEIGHBOURS, summed
from .prepare import Reading

DETECTED = ("probability", "quality", "amplitude", "radius")
"""Columns by which a table of `outbid detect` is recognised. All may distinguish clutter."""
_MOST_LABELS = 64
"""Guard: labels of a column; more are ids."""
_ALIKE = 3.0
"""Error level: standard errors by which neighbours must be alike before their mean is taken out."""
_BY_PLACE = 0.5
"""Error level: share of the variance of a column that neighbours predict, from which on it says where."""
_SURE = 1e-4
"""Guard: distance of stated probabilities from 0 and 1."""


Kind = tuple[str, list[str]]
"""What a column is, and the columns of the table that it is made of."""


class Columns(NamedTuple):
    """Features of a movie; where each column's scores are in them; columns of labels, and by place."""

    features: Features
    blocks: dict[str, slice]
    labels: tuple[str, ...]
    by_place: tuple[str, ...]


@dataclass(frozen=True)
class ColumnBits:
    """What columns say about links and clutter."""

    links: Mapping[str, float]
    """Bits of each about a link to the next frame: 1 halves the number of detections that are likely."""
    clutter: float  # bits of all about whether a detection is clutter, per detection
    by_place: tuple[str, ...] = ()  # columns that are functions of the position

    def __str__(self) -> str:
        some = {name: bits for name, bits in self.links.items() if bits > 0}
        each = [f"{name} {bits:.2g}" for name, bits in sorted(some.items(), key=lambda one: -one[1])]
        some_help = f"Columns: {', '.join(each)} bits a link"
        message = some_help if each else "Columns: none says anything of links"
        silent = len(self.links) - len(some)
        message += f"; {silent} {'says' if silent == 1 else 'say'} nothing" if silent and each else ""
        return f"{message}; {self.clutter:.2g} bits a detection about clutter."

    @property
    def warning(self) -> str:
        """A warning of columns that say what positions say already; else empty."""
        message = f"Warning: nearly the same for neighbours: {', '.join(self.by_place)}. "
        return f"{message}Where a detection is, positions say already." if self.by_place else ""

    def as_dict(self) -> dict[str, object]:
        """Plain values, for run records."""
        return {"links": dict(self.links), "clutter": self.clutter, "by_place": list(self.by_place)}


def features_of(
    features: Mapping[str, NDArray],
    reading: Reading,
    column: Mapping[str, str] | str | None,
) -> Columns | None:
    """The features of a movie, of columns (N,) in the order of its detections as read; None if none help.

    Raises SettingsError if there is no such column, or its values are of another kind.
    """
    wanted, count = kinds_of(features, column), len(reading.order)
    if not wanted or not count:
        return None
    read = {name: values[reading.order] for name, values in values_of(features, wanted).items()}
    return scored(wanted, read, reading)


def values_of(
    features: Mapping[str, NDArray],
    wanted: Mapping[str, Kind],
    labels: Mapping[str, NDArray] | None = None,
) -> dict[str, NDArray]:
    """Columns as numbers (N, m), or labels (N,) as numbers from 0, where `labels` may state the order.

    Raises SettingsError if values are of another kind than is wanted.
    """
    return {
        name: _labels(name, np.asarray(features[members[0]]), (labels or {}).get(name))
        if kind == "label"
        else _numbers(name, [np.asarray(features[member]) for member in members])
        for name, (kind, members) in wanted.items()
    }


def scored(wanted: Mapping[str, Kind], values: Mapping[str, NDArray], reading: Reading) -> Columns:
    """The features of a movie, of values in the order in which its detections were read."""
    count = len(reading.order)
    near, _ = nearest(reading.position, reading.frame_start, np.arange(count), NEIGHBOURS)
    kept: list[tuple[NDArray[np.float64], NDArray[np.bool_]]] = []
    clutter: list[NDArray[np.float64]] = []
    blocks, by_place = dict[str, slice](), list[str]()
    labels = {name: values[name] for name, (kind, _) in wanted.items() if kind == "label"}
    for name, (kind, _) in wanted.items():
        if kind == "label":
            continue
        numbers = values[name]
        scores = _scores(kind, numbers)
        clutter += [] if kind.startswith("angle=") else scores
        if kind not in ("probability", "clutter"):
            seen = np.broadcast_to(np.isfinite(numbers).T, (len(scores), count))
            own = [_own(*one, reading.frame, near) for one in zip(scores, seen, strict=True)]
            blocks[name] = slice(len(kept), len(kept) + len(own))
            kept += [(score, known) for (score, _), known in zip(own, seen, strict=True)]
            by_place += [name] * (max(share for _, share in own) > _BY_PLACE)
    value, known = zip(*kept, strict=True) if kept else ((), ())
    chosen = Features(
        _stacked(count, value), _stacked(count, known).astype(np.bool_), _stacked(count, clutter),
        _stacked(count, labels.values()).astype(np.int64),
    )  # fmt: skip
    return Columns(chosen, blocks, tuple(labels), tuple(by_place))


def kinds_of(features: Mapping[str, NDArray], column: Mapping[str, str] | str | None) -> dict[str, Kind]:
    """Kind and members of each column that helps; those of `outbid detect` first.

    Raises SettingsError if a column is named that there is not.
    """
    if column is None:
        return {}
    named = column if isinstance(column, Mapping) else {}
    found: dict[str, Kind] = {}
    if all(name in features and features[name].dtype.kind == "f" for name in DETECTED):
        kinds = {"probability": "probability", "quality": "clutter"}
        found = {name: (kinds.get(name, "number"), [name]) for name in DETECTED}
    for name, kind in named.items():
        members = [name] if name in features else [one for one in features if fnmatchcase(one, name)]
        if not members:
            near = difflib.get_close_matches(name, features, 1)
            meant = f"Did you mean {near[0]!r}?" if near else f"Columns are: {', '.join(features) or 'none'}."
            raise SettingsError(f"No column is called {name!r}. {meant}")
        if kind == "none":
            found.pop(name, None)
            continue
        text = features[members[0]].dtype.kind not in "iuf"
        lists = text and isinstance(next(iter(features[members[0]]), None), list | tuple | np.ndarray)
        usual = "vector" if lists or len(members) > 1 else "label" if text else "number"
        found[name] = (kind or usual, members)
    return found


def _scores(kind: str, numbers: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Scores of a column of numbers (N, m), of mean 0 and variance 1; 0 where they are missing."""
    if kind.startswith("angle="):
        turn = 2 * np.pi * numbers[:, 0] / period_of(kind)
        return [_standard(np.cos(turn)), _standard(np.sin(turn))]
    if kind == "probability":
        p = np.clip(numbers[:, 0], _SURE, 1 - _SURE)
        return [_standard(np.log(p / (1 - p)))]
    return [_ranked(values) for values in numbers.T]


def _own(
    score: NDArray[np.float64], seen: NDArray[np.bool_], frame: NDArray[np.int64], near: NDArray[np.int32]
) -> tuple[NDArray[np.float64], float]:
    """Scores less the mean of the frame and, where these are alike, of neighbours; and their share."""
    frames, known = int(frame[-1]) + 1, seen.astype(np.float64)
    mean = summed(frame, score * known, frames) / (summed(frame, known, frames) + PRIOR)
    score = np.where(seen, score - mean[frame], 0.0)
    beside = (near >= 0) & seen[near]
    many = beside.sum(axis=1)
    local = np.where(beside, score[near], 0.0).sum(axis=1) / np.maximum(many, 1)
    used = seen & (many > 0)
    pairs = ((local, local), (score, score), (local, score))
    square, total, product = (float((a[used] * b[used]).sum()) for a, b in pairs)
    share = 0.0
    # Each pair of neighbours counts twice, in a product of as many terms as there are detections.
    if square > 0 and product >= _ALIKE * np.sqrt(2 * square * total / max(int(used.sum()), 1)):
        score, share = score - product / square * local, product**2 / (square * total)
    return np.where(seen, _standard(score), 0.0), share


def _stacked(count: int, columns: Iterable[NDArray]) -> NDArray[np.float64]:
    """(N, m) array of columns, of which there may be none."""
    return np.column_stack([np.empty((count, 0)), *columns])


def _numbers(name: str, values: list[NDArray]) -> NDArray[np.float64]:
    """(N, m) numbers of one or more columns, or of a column of lists."""
    try:
        if len(values) == 1 and values[0].dtype.kind == "O":
            rows = [np.atleast_1d(np.asarray(row, dtype=np.float64)) for row in values[0]]
            wide = max(map(len, rows))
            values = list(np.stack([row if len(row) == wide else np.full(wide, np.nan) for row in rows]).T)
        found = np.column_stack([np.asarray(one, dtype=np.float64) for one in values])
    except (TypeError, ValueError):
        raise SettingsError(
            f"Column {name!r} holds no numbers. Is it a label? --features {name}:label"
        ) from None
    return np.where(np.isfinite(found), found, np.nan)


def _labels(name: str, values: NDArray, known: NDArray | None = None) -> NDArray[np.int64]:
    """(N,) labels from 0, in the order of `known` or sorted; -1 where it is empty, no number, or unknown."""
    values = values.astype(str)
    kinds = labels_in(values) if known is None else known
    if len(kinds) > _MOST_LABELS:
        raise SettingsError(
            f"Column {name!r} has {len(kinds)} labels, more than {_MOST_LABELS}: are they ids? "
            f"For numbers: --features {name}:number"
        )
    number = {label: k for k, label in enumerate(kinds.tolist())}
    return np.array([number.get(label, -1) for label in values.tolist()], np.int64)


def labels_in(values: NDArray) -> NDArray:
    """The labels of a column, sorted."""
    kinds = np.unique(values.astype(str))
    return kinds[~np.isin(kinds, ["", "nan", "None"])]


def _ranked(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) normal scores of ranks, of variance 1; ties share theirs, and missing ones have 0.

    >>> _ranked(np.array([3.0, 1e9, 2.0, np.nan])).round(2).tolist()
    [0.0, 1.22, -1.22, 0.0]
    """
    from scipy.special import ndtri  # where nothing is learned, SciPy is not loaded

    seen = np.isfinite(values)
    _, index, count = np.unique(values[seen], return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - (count - 1) / 2
    score = np.zeros(len(values))
    score[seen] = ndtri((rank - 0.5) / max(int(seen.sum()), 1))[index]
    return _standard(np.where(seen, score, np.nan))


def _standard(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of mean 0 and variance 1 over those known, 0 elsewhere."""
    seen = np.isfinite(values)
    if not seen.any():
        return np.zeros_like(values)
    spread, centred = float(values[seen].std()), values - values[seen].mean()
    return np.asarray(np.where(seen, centred / spread if spread > 0 else 0.0, 0.0))
