"""Process the whole of a large movie with the model learned from a sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module, to_device
from ...compute.timing import lap
from ...compute.tolerances import NEGLIGIBLE
from ..inference.candidates import Search, candidates_of, pairs_near
from ..inference.jpda import converged
from ..inference.posterior import LinkPosterior
from ..model import LocalFields, Model
from ..model.features import Features
from ..model.gate import reaches
from ..model.movie import NEIGHBOURS, OUTER, Movie, movie_of
from .em import with_gaps
from .field import Fields
from .m_steps import adapt
from .options import LearnOptions
from .registration import frame_shifts
from .sample import Sample
from .starts import first_order, narrow, without_jumps

SHARED = 0.02
"""Guard: mean square of the flow, in that of steps, up to which there is none."""
_ROOM = 1.4
"""Guard: gates within which candidates are sought, before steps are known here; a spacing at least."""


def extend_to_movie(
    given: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64] | None],
    sample: Sample,
    learned: tuple[Movie, Model],
    options: LearnOptions,
    features: Features | None = None,
) -> tuple[Movie, Model, LinkPosterior]:
    """Movie, model and posterior of all detections; motion and features come from the sample, rates from all.

    Given are positions, starts of frames and times of frames, as in `learn`; learned are movie and model of
    the sample.
    """
    (part, fitted), (position, frame_start, time) = learned, given
    steps = float(fitted.motion.share @ fitted.motion.variance.sum(axis=1))
    if options.device == "gpu":
        position = to_device(position)
    flows = float(np.square(fitted.local.flow).sum(axis=1).mean()) > SHARED * steps
    rotated = (position - position.mean(axis=0)) @ array_module(position).asarray(part.basis)
    movie = movie_of(
        rotated, frame_start, basis=part.basis, spacing=1.0, neighbours=OUTER if flows else NEIGHBOURS,
    )  # fmt: skip
    shift = frame_shifts(movie.position, frame_start)
    movie, flow = without_jumps(movie, movie.of_frames(shift), np.abs(shift).max(axis=1) > 0)
    movie = replace(movie, time=time, near=movie.near if flows else None, features=features)
    fields = Fields.of(movie, flows=flows)
    lap("density", movie.position)
    posterior, flow = _first(movie, fitted, flow, fields, options)
    scale = np.ones(len(movie.intervals))
    scale[sample.frames.start : sample.frames.stop - 1] = fitted.motion.step_scale
    motion = replace(fitted.motion, step_scale=scale)
    model = Model(motion, fitted.association, LocalFields.uniform(flow), fitted.features)

    def once_more(posterior: LinkPosterior) -> LinkPosterior:
        after = converged(movie, model, posterior, sweeps=1)
        options.on_sweep(len(movie))
        return after

    lap("first links", posterior.probability)
    posterior = once_more(posterior)
    lap("first sweep", posterior.probability)
    if options.gaps:
        posterior = with_gaps(movie, model, posterior, options)
        lap("gaps", posterior.probability)
    model = options.fixed.apply(movie, adapt(movie, model, posterior, fields))
    # Below the odds of the gate a link hardly changes the others.
    posterior = once_more(posterior.kept(posterior.probability > NEGLIGIBLE))
    lap("last sweep", posterior.probability)
    return movie, model, posterior


def _first(
    movie: Movie, fitted: Model, flow: NDArray[np.float64], fields: Fields, options: LearnOptions
) -> tuple[LinkPosterior, NDArray[np.float64]]:
    """Links to the next frame and the flow, by displacements alone; what led there leaves the memory."""
    reach = _ROOM * reaches(movie, fitted.motion, 1, NEGLIGIBLE * float(np.median(movie.density)))
    search = Search(1, options.nearest, movie.position + flow, radius=np.maximum(reach, 1.0), asking="tails")
    candidates = candidates_of(pairs_near(movie, search), movie.frame)
    candidates = candidates.kept(options.fixed.within_gate(movie, flow, candidates))
    first = first_order(movie, candidates, flow, fields)
    return narrow(first.posterior), first.flow
