"""Merges: two tracks that become one, which are divisions in reversed time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..inference.candidates import candidates_of
from ..inference.posterior import LinkPosterior
from ..linking import Links
from ..model import AssociationModel, Model, Surroundings
from ..model.movie import Movie
from . import Lineage, with_divisions


def with_merges(
    movie: Movie,
    model: Model,
    posterior: LinkPosterior,
    *,
    solver: str = "bid_and_augment",
    exact: bool = False,
) -> tuple[Links, Lineage]:
    """Links and merges of maximum expected F1; parameters as of `with_divisions`.

    Returns
    -------
    links : Links
        Including those from both particles that merge.
    lineage : Lineage
        In reversed time.
    """
    links, lineage = with_divisions(*_backward(movie, model, posterior), solver=solver, exact=exact)
    pairs = (len(movie) - 1 - links.pairs)[:, ::-1]
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    assert links.probability is not None
    return replace(
        links, pairs=pairs[order], cost=links.cost[order], margin=links.margin[order],
        probability=links.probability[order],
    ), lineage  # fmt: skip


def _backward(movie: Movie, model: Model, posterior: LinkPosterior) -> tuple[Movie, Model, LinkPosterior]:
    """Movie, model and posterior in reversed time: row i becomes row N - 1 - i."""
    last = len(movie) - 1
    reverse = replace(
        movie,
        position=np.ascontiguousarray(movie.position[::-1]),
        frame=movie.frames - 1 - movie.frame[::-1],
        frame_start=len(movie) - movie.frame_start[::-1],
        density=movie.density[::-1].copy(),
        time=None if movie.time is None else movie.time[-1] - movie.time[::-1],
        near=None,
    )
    around, rates = model.surroundings, model.association
    flow = _flow_back(movie, around.flow, posterior)
    surroundings = Surroundings(flow, around.survival_back[::-1].copy(), around.survival[::-1].copy())
    association = AssociationModel(rates.delay_back, rates.delay, rates.clutter)
    motion = replace(model.motion, step_scale=model.motion.step_scale[::-1].copy())
    candidates = posterior.candidates
    key = (last - candidates.head).astype(np.int64) * len(movie) + (last - candidates.tail)
    order = np.argsort(key)
    return reverse, Model(motion, association, surroundings), replace(
        posterior, candidates=candidates_of(key[order], reverse.frame),
        probability=posterior.probability[order], rivals=posterior.rivals[::-1][:, order].copy(),
        ratio=posterior.ratio[order], past=posterior.future[order], future=posterior.past[order],
        clutter=posterior.clutter[::-1].copy(), death=posterior.birth[::-1].copy(),
        birth=posterior.death[::-1].copy(), moments=None,
    )  # fmt: skip


def _flow_back(movie: Movie, flow: NDArray[np.float64], posterior: LinkPosterior) -> NDArray[np.float64]:
    """(N, D) step to the previous frame, in reversed time: minus that of the most probable predecessor.

    Without one it is minus the mean flow of the previous frame, whose interval it spans.
    """
    candidates, p = posterior.candidates, posterior.probability
    mean = movie.mean_by_frame(flow)[np.maximum(movie.frame - 1, 0)]
    likely = (p > 0.5) & (candidates.lag == 1)
    mean[candidates.head[likely]] = flow[candidates.tail[likely]]
    return -mean[::-1]
