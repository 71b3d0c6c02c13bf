"""Figure 5 of Vasconcelos & Rosenhahn: 500 particles in 3D at several levels of persistence.

The paper shows the paths of the particles. This experiment draws the paths together with the wrong links
of the paper's matching, beside a plot of the share of right links. The paper's matching minimises the
total distance, with all pairs of detections allowed.

C. N. Vasconcelos and B. Rosenhahn, Bipartite graph matching computation on GPU, EMMCVPR 2009.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outbid.tracks import Tracks

from ..comparison import Comparison, curves_of
from ..experiment import Panel, Paths, Row, Size
from ..linkers import linker_named
from ..scenes import Scene

_DRAWN = (0.0, 0.5, 1.0)


class Figure5(Comparison):
    """Movies without births, deaths, misses, clutter or noise, as in the paper; kappa is .3."""

    shows = "Vasconcelos & Rosenhahn's Figure 5: 500 particles in 3D, persistence 0 to 1, their matching."
    takes = "half a minute; seconds with --quick"
    size = Size(seeds=5, frames=20, particles=500)
    varied = ("persistence",)
    scenes = tuple(
        Scene(0.3, level, noise=0.0, turnover=0.0, walk="vasconcelos")
        for level in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    linkers = ("whole", "outbid")

    def panels(self, summary: list[Row], size: Size) -> list[Panel]:
        curves = curves_of(summary, "persistence", "link_f1")
        shown = [scene for scene in self.sized(size) if scene.persistence in _DRAWN]
        return [
            Panel("right links", "level of persistence", "link F1", curves),
            *(Panel(f"persistence {scene.persistence:g}", paths=_paths(scene)) for scene in shown),
        ]


def _paths(scene: Scene) -> Paths:
    """Links of the paper's matching in one movie, projected along z."""
    film, linker = scene.film(0), linker_named("whole")
    links = linker.link(film.detections, {}, scene.length_unit)
    return Paths(*(_seen(Tracks(film.detections, some)) for some in _judged(links, film.links)))


def _judged(links: NDArray[np.int64], truth: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Right links and wrong ones."""
    size = int(max(links.max(initial=0), truth.max(initial=0))) + 1
    right = np.isin(links @ [size, 1], truth @ [size, 1])
    return links[right], links[~right]


def _seen(tracks: Tracks) -> list[list[float]]:
    y, x = tracks.detections.position.T[1:]
    source, target = tracks.links.T
    return np.column_stack([x[source], y[source], x[target], y[target]]).tolist()


EXPERIMENT = Figure5()
