"""Comparisons: linkers on the same movies, with what they do unasked, and tuned on the truth of others."""

from __future__ import annotations

import time
from abc import abstractmethod

import numpy as np

from outbid.tracker.score import score
from outbid.tracker.tracks import Tracks

from .bootstrap import interval
from .experiment import Curve, Experiment, Panel, Row, Size, Trial, smaller
from .linkers import linker_named
from .linkers.linker import Linker, Settings, silence
from .scenes import Scene

TUNING_SEEDS = (1_000_001, 1_000_002)
"""Seeds of the movies on whose truth settings are chosen; never those of a comparison."""
_TUNING_SIZE = {"particles": 500, "frames": 10}

NOTHING, THE_TRUTH = "nothing", "the truth"

SCORES = ("link_f1", "link_recall", "link_precision", "idf1")


class Comparison(Experiment):
    """Scenes in which one or more quantities vary, and linkers that are compared on each.

    `varied` names the quantities, fields of `Scene`, and the first of them is the x of the plots; `y` is
    the score that is drawn.
    """

    varied: tuple[str, ...]
    linkers: tuple[str, ...]
    y: str = "link_f1"

    @property
    def cell(self) -> tuple[str, ...]:
        return (*self.varied, "linker", "told")

    @abstractmethod
    def scenes(self, size: Size) -> list[Scene]:
        """The cells."""

    def trials(self, size: Size) -> list[Trial]:
        seeds = tuple(range(size.seeds))
        return [
            Trial(scene, seeds, linker, told)
            for scene in self.scenes(size)
            for linker in self.linkers
            for told in ways_of(linker_named(linker), gaps=scene.miss > 0)
        ]

    def measure(self, trial: Trial) -> list[Row]:
        linker, scene = linker_named(trial.linker), trial.scene
        settings = linker.defaults(gaps=scene.miss > 0) if trial.told == NOTHING else tuned(linker, scene)
        cell: Row = {name: getattr(scene, name) for name in self.varied}
        cell |= {"linker": trial.linker, "told": trial.told}
        return [
            cell | {"seed": seed} | linked_and_scored(linker, settings or {}, scene, seed)
            for seed in trial.seeds
        ]

    def theory(self, size: Size) -> list[Curve]:
        """Curves that need no simulation."""
        del size
        return []

    def panels(self, summary: list[Row], size: Size) -> list[Panel]:
        curves = curves_of(summary, self.varied[0], self.y)
        return [Panel("", self.varied[0], self.y.replace("_", " "), [*curves, *self.theory(size)])]


def ways_of(linker: Linker, *, gaps: bool) -> list[str]:
    """What a linker can be told: nothing, if it has defaults; the truth, if it has settings."""
    ways = [] if linker.defaults(gaps=gaps) is None else [NOTHING]
    return [*ways, THE_TRUTH] if linker.grid(gaps=gaps) else ways


def tuned(linker: Linker, scene: Scene) -> Settings:
    """The settings, of the grid or the defaults, with the best link F1 on other movies, small ones."""
    other = smaller(scene, **_TUNING_SIZE)
    films = [other.film(seed) for seed in TUNING_SEEDS]
    best, chosen = -1.0, {}
    usual = linker.defaults(gaps=scene.miss > 0)
    for settings in linker.grid(gaps=scene.miss > 0) + ([] if usual is None else [usual]):
        found = []
        for film in films:
            with silence():
                links = linker.link(film.detections, settings, scene.nearest)
            values = score(Tracks(film.detections, links), film, families=("links",)).values
            found.append(np.nan_to_num(values["link_f1"]))
        if np.mean(found) > best:
            best, chosen = float(np.mean(found)), settings
    return chosen


def linked_and_scored(linker: Linker, settings: Settings, scene: Scene, seed: int) -> Row:
    """Scores of what a linker makes of one movie."""
    film = scene.film(seed)
    start = time.process_time()
    with silence():
        links = linker.link(film.detections, settings, scene.nearest)
    seconds = time.process_time() - start
    values = score(Tracks(film.detections, links), film, families=("links", "identity")).values
    scores: Row = {name: values[name] for name in SCORES}
    told = " ".join(f"{name}={value}" for name, value in settings.items())
    return scores | {"links": len(links), "seconds": round(seconds, 3), "settings": told}


def curves_of(summary: list[Row], x: str, y: str) -> list[Curve]:
    """One curve for each linker and what it was told."""
    who = dict.fromkeys((str(row["linker"]), str(row["told"])) for row in summary)
    curves = []
    for linker, told in who:
        rows = [row for row in summary if (row["linker"], row["told"]) == (linker, told)]
        values = [[float(row[name]) for row in rows] for name in (x, y, f"{y}_low", f"{y}_high")]
        label = linker if linker in ("outbid", "nearest") else f"{linker}, told {told}"
        curves.append(Curve(label, values[0], values[1], values[2], values[3]))
    return curves


def against_the_best(rows: list[Row], varied: tuple[str, ...], value: str) -> list[Row]:
    """In every cell: ours, the best of the others, and the paired difference with its interval.

    Parameters
    ----------
    rows : list of Row
        As `Comparison.measure` gives them.
    varied : tuple of str
        Columns that name a cell.
    value : str
        The score; the best rival is the one with the greatest mean.

    Examples
    --------
    >>> rows = [
    ...     {"linker": who, "told": "nothing", "seed": seed, "link_f1": best - seed / 100}
    ...     for who, best in (("outbid", 0.95), ("laptrack", 0.9), ("nearest", 0.8))
    ...     for seed in (0, 1)
    ... ]
    >>> found = against_the_best(rows, (), "link_f1")[0]
    >>> found["rival"], round(found["lead"], 3), found["verdict"]
    ('laptrack, told nothing', 0.05, 'better')
    """
    cells: dict[tuple[float | int | str, ...], dict[str, dict[int, float]]] = {}
    for row in rows:
        by_who = cells.setdefault(tuple(row[name] for name in varied), {})
        who = "outbid" if row["linker"] == "outbid" else f"{row['linker']}, told {row['told']}"
        by_who.setdefault(who, {})[int(row["seed"])] = float(np.nan_to_num(float(row[value])))
    found = []
    for key, by_who in cells.items():
        ours = by_who.pop("outbid", None)
        if ours is None or not by_who:
            continue
        rival = max(by_who, key=lambda who: np.mean(list(by_who[who].values())))
        shared = [seed for seed in ours if seed in by_who[rival]]
        mine, theirs = (np.array([one[seed] for seed in shared]) for one in (ours, by_who[rival]))
        lead, low, high = interval(mine - theirs)
        verdict = "better" if low > 0 else "worse" if high < 0 else "alike"
        summed: Row = dict(zip(varied, key, strict=True))
        summed |= {"score": value, "outbid": float(mine.mean()), "rival": rival, "best": float(theirs.mean())}
        found.append(summed | {"lead": lead, "lead_low": low, "lead_high": high, "verdict": verdict})
    return found
