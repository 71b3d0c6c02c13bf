"""Two records side by side, paired movie by movie; and the rule by which an engine replaces the old one.

``python -m accuracy.compare NEW.npz [OLD.npz]`` prints the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .measured import Measured, Record

MEAN = 0.001
"""Link F1 by which the mean over all kinds may be behind."""
KIND = 0.003
"""Link F1 by which one kind may be behind, or twice its standard error if that is more."""
IDENTITY = 0.005
"""IDF1, and F1 of divisions, by which the mean may be behind."""

SCORES: dict[str, Callable[[Measured], float]] = {
    "link F1": lambda row: row.link_f1,
    "IDF1": lambda row: row.idf1,
    "division F1": lambda row: row.division_f1,
    "calibration": lambda row: row.calibration_error,
}


@dataclass(frozen=True)
class Difference:
    """Means of two records over the same movies, and of their difference with its standard error."""

    new: float
    old: float
    error: float
    movies: int

    @property
    def gain(self) -> float:
        return self.new - self.old

    @classmethod
    def of(cls, pairs: NDArray[np.float64]) -> Difference:
        """From pairs (P, 2) of new and old; NaN where neither has a value."""
        known = pairs[np.isfinite(pairs).all(axis=1)]
        if len(known) == 0:
            return cls(np.nan, np.nan, np.nan, 0)
        apart = known[:, 0] - known[:, 1]
        error = float(apart.std(ddof=1) / np.sqrt(len(apart))) if len(apart) > 1 else np.nan
        return cls(*known.mean(axis=0).tolist(), error, len(known))

    def __str__(self) -> str:
        if not self.movies:
            return f"{'':29}"
        return f"{self.new:7.4f} {self.old:7.4f} {self.gain:+8.4f} ±{self.error:.4f}".replace(
            "±nan", "±  -   "
        )


@dataclass(frozen=True)
class Kind:
    """All movies of one kind at one level: differences of each score, and the ratio of their seconds."""

    name: str
    recorded: bool
    scores: dict[str, Difference]
    seconds: float

    @property
    def behind(self) -> bool:
        """Whether link F1 is behind by more than one kind may be."""
        found = self.scores["link F1"]
        return bool(found.gain < -max(KIND, 2 * np.nan_to_num(found.error)))


@dataclass(frozen=True)
class Verdict:
    """A comparison: every kind, and the rule's conditions with their answers."""

    kinds: tuple[Kind, ...]
    conditions: tuple[tuple[str, bool], ...]

    @property
    def passed(self) -> bool:
        return all(answer for _, answer in self.conditions)

    def table(self) -> str:
        """Every kind in a line; then the means, and the rule."""
        head = f"{'kind':38}" + "".join(f"{name + ': new, old, gain':32}" for name in SCORES) + "time new/old"
        groups = [
            mean_of("mean of simulated", [kind for kind in self.kinds if not kind.recorded]),
            mean_of("mean of recorded", [kind for kind in self.kinds if kind.recorded]),
            mean_of("mean of all", self.kinds),
        ]
        lines = [_line(kind) for kind in (*self.kinds, *groups)]
        rule = [f"{'yes' if answer else 'NO '}  {text}" for text, answer in self.conditions]
        return "\n".join([head, *lines, "", *rule])


def compared(new: Record, old: Record) -> Verdict:
    """The new record against the old, over the movies that both hold.

    Raises
    ------
    ValueError
        If a movie of the same name is not the same in both.
    """
    before = {row.movie: row for row in old.rows}
    pairs = [(row, before[row.movie]) for row in new.rows if row.movie in before]
    for one, other in pairs:
        if one.fingerprint != other.fingerprint:
            raise ValueError(f"{one.movie} is another movie in the old record. Measure both again.")
    groups: dict[str, list[tuple[Measured, Measured]]] = {}
    for pair in pairs:
        movie = pair[0].movie
        groups.setdefault(movie.kind if movie.recorded else f"{movie.kind} {movie.level:g}", []).append(pair)
    kinds = tuple(_kind(name, group) for name, group in groups.items())
    return Verdict(kinds, tuple(_rule(kinds)))


def _kind(name: str, pairs: Sequence[tuple[Measured, Measured]]) -> Kind:
    scores = {
        title: Difference.of(np.array([[value(one), value(other)] for one, other in pairs]))
        for title, value in SCORES.items()
    }
    new, old = np.array([[one.seconds, other.seconds] for one, other in pairs]).T
    return Kind(name, pairs[0][0].movie.recorded, scores, float(new.sum() / old.sum()))


def mean_of(name: str, kinds: Sequence[Kind]) -> Kind:
    """The mean over kinds, each of them once; its error from theirs, or from their spread without any."""
    scores = {}
    for title in SCORES:
        known = [kind.scores[title] for kind in kinds if kind.scores[title].movies]
        if not known:
            scores[title] = Difference(np.nan, np.nan, np.nan, 0)
            continue
        errors, gains = (np.array([getattr(found, part) for found in known]) for part in ("error", "gain"))
        if not np.isfinite(errors).any() and len(known) > 1:
            errors = np.full(len(known), gains.std(ddof=1))
        error = float(np.sqrt(np.nansum(errors**2)) / len(known)) if np.isfinite(errors).any() else np.nan
        new, old = (float(np.mean([getattr(found, side) for found in known])) for side in ("new", "old"))
        scores[title] = Difference(new, old, error, sum(found.movies for found in known))
    seconds = float(np.exp(np.mean(np.log([kind.seconds for kind in kinds])))) if kinds else np.nan
    return Kind(name, False, scores, seconds)


def _rule(kinds: Sequence[Kind]) -> list[tuple[str, bool]]:
    """The conditions under which the new engine replaces the old one."""
    mean = mean_of("", kinds).scores
    late = [kind.name for kind in kinds if kind.behind]
    links, identity, parts, sure = (mean[title] for title in SCORES)
    return [
        (f"mean link F1 {links.gain:+.4f}: above -{MEAN}", links.gain >= -MEAN),
        (f"no kind behind by {KIND} and twice its error: {', '.join(late) or 'none is'}", not late),
        (f"mean IDF1 {identity.gain:+.4f}: above -{IDENTITY}", identity.gain >= -IDENTITY),
        (f"mean F1 of divisions {parts.gain:+.4f}: above -{IDENTITY}", not parts.gain < -IDENTITY),
        (
            f"error of probabilities {sure.gain:+.4f} ± {sure.error:.4f}: no worse",
            not sure.gain > 2 * sure.error,
        ),
    ]


def _line(kind: Kind) -> str:
    mark = " <" if kind.behind else ""
    scores = "   ".join(str(kind.scores[title]) for title in SCORES)
    return f"{kind.name:38}{scores}   {kind.seconds:6.2f}{mark}"


def main() -> int:
    paths = [Path(word) for word in sys.argv[1:]]
    old = paths[1] if len(paths) > 1 else Path(__file__).with_name("baseline.npz")
    verdict = compared(Record.load(paths[0]), Record.load(old))
    print(verdict.table())
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    sys.exit(main())
