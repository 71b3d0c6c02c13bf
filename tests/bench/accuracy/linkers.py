"""What links: functions from frames (N,) and positions (N, 3) to links (E, 2) and their probabilities (E,).

Rows are sorted by frame. A linker is named as a function of this module, or as
``module:function`` of any other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .options import is_constant, scale_constant, varied

Linked = tuple[NDArray[np.int64], NDArray[np.float64]]
Linker = Callable[[NDArray[np.int32], NDArray[np.float64]], Linked]


def learned(frame: NDArray[np.int32], position: NDArray[np.float64]) -> Linked:
    """`outbid.track` of this checkout with nothing set."""
    from outbid import Detections, track

    found = track(Detections.from_table(frame, position), workers=1).tracks
    assert found.link_probability is not None
    return found.links, found.link_probability


def posterior(frame: NDArray[np.int32], position: NDArray[np.float64], change: str = "") -> Linked:
    """The posterior over links that `outbid.learned.learn` finds; `change` varies one of its options."""
    from outbid.learned.inference.decide import decide

    found, order = _found(frame, position, change)
    links = decide(found.posterior.candidates, found.posterior.probability)
    return order[links.pairs], links.probability


def lineage(frame: NDArray[np.int32], position: NDArray[np.float64], change: str = "") -> Linked:
    """The same with divisions, by `outbid.learned.lineage`."""
    from outbid.learned.lineage import hypothesis

    found, order = _found(frame, position, change)
    links = hypothesis(found.movie, found.model, found.posterior).decide()
    return order[links.pairs], links.probability


def _found(
    frame: NDArray[np.int32], position: NDArray[np.float64], change: str
) -> tuple[Any, NDArray[np.int64]]:
    """What is learned, as `track` reads the movie: with the times of its frames; and the row of each."""
    from outbid import Detections
    from outbid.learned.learn import learn
    from outbid.learned.learn.options import LearnOptions
    from outbid.learned.prepare import read_movie

    seen = read_movie(Detections.from_table(frame, position), holes=True)
    options = varied(LearnOptions(), change)
    return learn(seen.position, seen.frame_start, options, time=seen.time), seen.order


def named(name: str) -> Linker:
    """The linker of this name; after a ``?``, what is given to it as `change` of its options.

    A change of a constant, as ``learn.starts._NOISE*0.5``, is for the whole process.
    """
    name, _, change = name.partition("?")
    if is_constant(change):
        scale_constant(change)
        change = ""
    module, _, function = name.rpartition(":")
    linker = getattr(import_module(module or __name__), function)
    return partial(linker, change=change) if change else linker
