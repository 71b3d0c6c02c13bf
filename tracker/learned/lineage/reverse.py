"""Reversed time: divisions become merges, and merges become divisions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...geometry.neighbours import nearest
from ..inference.candidates import candidates_of
from ..inference.posterior import LinkPosterior
from ..model import AssociationModel, Model, Surroundings
from ..model.movie import Movie


def in_reverse(movie: Movie, model: Model, posterior: LinkPosterior) -> tuple[Movie, Model, LinkPosterior]:
    """A movie, its model and its posterior in reversed time.

    Row i becomes row N - 1 - i. The model of motion is reversible, so probabilities stay what they are.
    """
    last = len(movie) - 1
    turned = replace(
        movie, position=np.ascontiguousarray(movie.position[::-1]), near=None,
        frame=movie.frames - 1 - movie.frame[::-1], frame_start=len(movie) - movie.frame_start[::-1],
        density=movie.density[::-1], time=None if movie.time is None else -movie.time[::-1],
        marks=None if movie.marks is None else movie.marks.at(slice(None, None, -1)),
        pins=None if movie.pins is None else movie.pins.in_reverse(),
    )  # fmt: skip
    motion, rates, around = model.motion, model.association, model.surroundings
    back = Model(
        replace(motion, step_scale=motion.step_scale[::-1]),
        AssociationModel(rates.delay_back, rates.delay, rates.clutter),
        Surroundings(
            -flow_to(movie, around.flow, posterior)[::-1], around.survival_back[::-1], around.survival[::-1]
        ),
        model.marks,
    )
    links = posterior.candidates
    key = (last - links.head.astype(np.int64)) * np.int64(len(movie)) + last - links.tail
    order = np.argsort(key)
    return turned, back, replace(
        posterior, candidates=candidates_of(key[order], turned.frame),
        probability=posterior.probability[order], rivals=posterior.rivals[::-1][:, order],
        ratio=posterior.ratio[order], past=posterior.future[order], future=posterior.past[order],
        clutter=posterior.clutter[::-1], death=posterior.birth[::-1], birth=posterior.death[::-1],
        fresh=posterior.death[::-1], clutter_weight=posterior.clutter_weight[::-1, ::-1], moments=None,
        displaced=None, pull=None if posterior.pull is None else posterior.pull[::-1][:, order],
    )  # fmt: skip


def flow_to(movie: Movie, flow: NDArray[np.float64], posterior: LinkPosterior) -> NDArray[np.float64]:
    """(N, D) flow over the interval before each detection, from the flow (N, D) over the interval after it.

    It is that of the probable predecessor; without one, that of the detection of the previous frame whose
    predicted position is nearest.
    """
    source = posterior.neighbours()[1]
    without = np.flatnonzero((source < 0) & (movie.frame > 0))
    places = np.concatenate([movie.position[without], movie.position + flow])
    first = np.searchsorted(movie.frame[without], np.arange(movie.frames))
    start = np.concatenate([first, movie.frame_start + len(without)])
    near, _ = nearest(places, start, np.arange(len(without)), 1, offset=movie.frames - 1)
    source[without] = np.where(near[:, 0] < 0, -1, near[:, 0] - len(without))
    return np.where(source[:, None] < 0, 0.0, flow[source])
