"""Comparisons: linkers on the same movies, at their defaults and tuned on the truth of other movies."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from outbid.particles.tracks import Tracks
from outbid.scoring import score

from .bootstrap import interval
from .experiment import Curve, Experiment, Panel, Row, Size, Trial, grouped
from .linkers import linker_named
from .linkers.linker import Linker, Settings, silence
from .scenes import Scene

TUNING_SEEDS = (1_000_001, 1_000_002)
"""Seeds of the movies on whose truth settings are tuned; a comparison never uses them."""
_TUNING_PARTICLES, _TUNING_FRAMES = 500, 10
"""Largest number of particles and of frames of those movies."""

NOTHING, THE_TRUTH = "nothing", "the truth"

SCORES = ("link_f1", "link_recall", "link_precision", "idf1")


@dataclass(frozen=True, kw_only=True)
class Comparison(Experiment):
    """Scenes in which one or more quantities vary, and linkers that are compared on each.

    Parameters
    ----------
    shows, takes, size, quick
        As for `Experiment`.
    varied : tuple of str
        The quantities, fields of `Scene`; the first is the x axis of the plots.
    scenes : tuple of Scene
    linkers : tuple of str
    y : str
        The score that is plotted.
    judged : tuple of str
        Scores for which Outbid is compared with the best of the others.
    theory : callable
        Curves from theory, of the quantity and the scenes, which need no simulation.
    """

    shows: str
    takes: str = "half a minute; seconds with --quick"
    size: Size = Experiment.size
    quick: Size = Experiment.quick
    varied: tuple[str, ...]
    scenes: tuple[Scene, ...]
    linkers: tuple[str, ...] = ("nearest", "plain", "outbid")
    y: str = "link_f1"
    judged: tuple[str, ...] = ()
    theory: Callable[[str, list[Scene]], list[Curve]] | None = None

    @property
    def cell(self) -> tuple[str, ...]:
        return (*self.varied, "linker", "given")

    def sized(self, size: Size) -> list[Scene]:
        """The scenes, with the particles and frames of `size`."""
        return [replace(scene, particles=size.particles, frames=size.frames) for scene in self.scenes]

    def trials(self, size: Size) -> list[Trial]:
        seeds = tuple(range(size.seeds))
        return [
            Trial(scene, seeds, linker, given)
            for scene in self.sized(size)
            for linker in self.linkers
            for given in ways_of(linker_named(linker), gaps=scene.miss > 0)
        ]

    def measure(self, trial: Trial) -> list[Row]:
        linker, scene = linker_named(trial.linker), trial.scene
        settings = linker.defaults(gaps=scene.miss > 0) if trial.given == NOTHING else tuned(linker, scene)
        return [
            trial.cell(self.cell) | {"seed": seed} | linked_and_scored(linker, settings or {}, scene, seed)
            for seed in trial.seeds
        ]

    def panels(self, summary: list[Row], size: Size) -> list[Panel]:
        over = self.varied[0]
        known = [] if self.theory is None else self.theory(over, self.sized(size))
        curves = [*curves_of(summary, over, self.y), *known]
        return [Panel("", over, self.y.replace("_", " "), curves)]

    def conclusions(self, rows: list[Row], summary: list[Row]) -> list[Row]:
        del summary
        return [found for value in self.judged for found in against_the_best(rows, self.varied, value)]


def ways_of(linker: Linker, *, gaps: bool) -> list[str]:
    """Ways in which a linker can get its settings: its defaults, or a search on the truth of other movies."""
    ways = [] if linker.defaults(gaps=gaps) is None else [NOTHING]
    return [*ways, THE_TRUTH] if linker.grid(gaps=gaps) else ways


def tuned(linker: Linker, scene: Scene) -> Settings:
    """The settings, from the grid or the defaults, with the best link F1 on other, smaller movies."""
    particles, frames = min(scene.particles, _TUNING_PARTICLES), min(scene.frames, _TUNING_FRAMES)
    films = [replace(scene, particles=particles, frames=frames).film(seed) for seed in TUNING_SEEDS]

    def reached(settings: Settings) -> float:
        found = [_linked(linker, settings, scene, film) for film in films]
        values = [
            score(*pair, families=("links",), link_rule="edge").values
            for pair in zip(found, films, strict=True)
        ]
        return float(np.mean(np.nan_to_num([one["link_f1"] for one in values])))

    usual = linker.defaults(gaps=scene.miss > 0)
    return max([*linker.grid(gaps=scene.miss > 0), *([] if usual is None else [usual])], key=reached)


def linked_and_scored(linker: Linker, settings: Settings, scene: Scene, seed: int) -> Row:
    """Scores of the links that a linker finds in one movie."""
    film = scene.film(seed)
    start = time.process_time()
    found = _linked(linker, settings, scene, film)
    seconds = time.process_time() - start
    values = score(found, film, families=("links", "identity"), link_rule="edge").values
    scores: Row = {name: values[name] for name in SCORES}
    used = " ".join(f"{name}={value}" for name, value in settings.items())
    return scores | {"links": len(found.links), "seconds": round(seconds, 3), "settings": used}


def _linked(linker: Linker, settings: Settings, scene: Scene, film: Tracks) -> Tracks:
    """The tracks that a linker finds in a movie of the scene."""
    with silence():
        return Tracks(film.detections, linker.link(film.detections, settings, scene.length_unit))


def curves_of(summary: list[Row], x: str, y: str) -> list[Curve]:
    """One curve of a plot for each pair of a linker and the source of its settings."""
    return [
        Curve.of(str(who) if who in ("outbid", "nearest") else f"{who}, given {given}", rows, x, y)
        for (who, given), rows in grouped(summary, ("linker", "given")).items()
    ]


def against_the_best(rows: list[Row], varied: tuple[str, ...], value: str) -> list[Row]:
    """For every cell, the score of Outbid, that of the best other linker, and their paired difference.

    Parameters
    ----------
    rows : list of Row
        From `Comparison.measure`.
    varied : tuple of str
        Columns that name a cell.
    value : str
        The score. The best rival has the highest mean; `seeds` counts the movies that both linked.

    Examples
    --------
    >>> rows = [
    ...     {"linker": who, "given": "nothing", "seed": seed, "link_f1": best - seed / 100}
    ...     for who, best in (("outbid", 0.95), ("laptrack", 0.9), ("nearest", 0.8))
    ...     for seed in (0, 1)
    ... ]
    >>> found = against_the_best(rows, (), "link_f1")[0]
    >>> found["rival"], round(found["lead"], 3), found["verdict"]
    ('laptrack, given nothing', 0.05, 'better')
    """
    found = []
    for key, those in grouped(rows, varied).items():
        by_who: dict[str, dict[int, float]] = {}
        for row in those:
            who = "outbid" if row["linker"] == "outbid" else f"{row['linker']}, given {row['given']}"
            by_who.setdefault(who, {})[int(row["seed"])] = float(np.nan_to_num(float(row[value])))
        ours = by_who.pop("outbid", None)
        if ours is None or not by_who:
            continue
        rival = max(by_who, key=lambda who: np.mean(list(by_who[who].values())))
        shared = [seed for seed in ours if seed in by_who[rival]]
        mine, theirs = (np.array([one[seed] for seed in shared]) for one in (ours, by_who[rival]))
        lead, low, high = interval(mine - theirs)
        verdict = "better" if low > 0 else "worse" if high < 0 else "alike"
        summed: Row = dict(zip(varied, key, strict=True))
        summed |= {"score": value, "seeds": len(shared), "outbid": float(mine.mean())}
        summed |= {"rival": rival, "best": float(theirs.mean())}
        found.append(summed | {"lead": lead, "lead_low": low, "lead_high": high, "verdict": verdict})
    return found
