"""Reversed time: divisions become merges, and merges become divisions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import BACKWARD, array_module, to_host
from ...geometry.neighbours import nearest
from ..inference.candidates import candidates_of
from ..inference.posterior import LinkPosterior
from ..model import LocalFields, Model
from ..model.movie import Movie


def in_reverse(movie: Movie, model: Model, posterior: LinkPosterior) -> tuple[Movie, Model, LinkPosterior]:
    """A movie, its model and its posterior in reversed time.

    Row i becomes row N - 1 - i. The model of motion is reversible, so probabilities stay what they are.
    """
    whole = replace(movie, near=None).take("frame", BACKWARD).take("row", BACKWARD)
    backward = replace(
        whole, position=whole.position.copy(), frame=movie.frames - 1 - whole.frame,
        frame_start=len(movie) - movie.frame_start[::-1], time=None if whole.time is None else -whole.time,
        pins=None if movie.pins is None else movie.pins.in_reverse(),
    )  # fmt: skip
    flow = flow_to(movie, model.local.flow, posterior)
    model = model.take("frame", BACKWARD).take("row", BACKWARD)
    rates, around = model.association, model.local
    back = replace(
        model, association=replace(rates, delay=rates.delay_back, delay_back=rates.delay),
        local=LocalFields(-flow[::-1], around.survival_back, around.survival),
    )  # fmt: skip
    links, last = posterior.candidates, len(movie) - 1
    key = (last - links.head.astype(np.int64)) * np.int64(len(movie)) + last - links.tail
    order = np.argsort(key)
    bare = replace(posterior, moments=None, displaced=None)
    after = bare.take("link", order).take("row", BACKWARD).take("side", BACKWARD)
    return backward, back, replace(
        after, candidates=candidates_of(key[order], backward.frame), death=after.birth, birth=after.death,
        birth_forward=after.death,
    )  # fmt: skip


def flow_to(movie: Movie, flow: NDArray[np.float64], posterior: LinkPosterior) -> NDArray[np.float64]:
    """(N, D) flow over the interval before each detection, from the flow (N, D) over the interval after it.

    It is that of the probable predecessor; without one, that of the detection of the previous frame whose
    predicted position is nearest.
    """
    source, xp = posterior.neighbours()[1], array_module(flow)
    without = np.flatnonzero((source < 0) & (movie.frame > 0))
    places = np.concatenate([movie.position[without], movie.position + flow])
    first = to_host(xp.searchsorted(movie.frame[without], xp.arange(movie.frames)))
    start = np.concatenate([first, movie.frame_start + len(without)])
    near, _ = nearest(places, start, xp.arange(len(without)), 1, offset=movie.frames - 1)
    source[without] = np.where(near[:, 0] < 0, -1, near[:, 0] - len(without))
    return np.where(source[:, None] < 0, 0.0, flow[source])
