"""Process the whole of a large movie with the model learned from a sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..inference.posterior import LinkPosterior, settled
from ..model import Model, Surroundings
from ..model.movie import Movie, movie_of
from .em import with_gaps
from .field import Fields
from .m_steps import adapted
from .options import LearnOptions
from .registration import frame_shifts
from .sample import Sample
from .starts import first_candidates, first_order, narrowed, without_jumps


def spread(
    given: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64] | None],
    sample: Sample,
    learned: tuple[Movie, Model],
    options: LearnOptions,
) -> tuple[Movie, Model, LinkPosterior]:
    """Movie, model and posterior of all detections; motion comes from the sample, rates from all.

    Parameters
    ----------
    given : (N, A) float64 array, (F + 1,) int64 array, (F,) int64 array or None
        Positions, starts of frames, and times of frames; as in `learn`.
    sample : Sample
    learned : Movie, Model
        Movie and model of the sample.
    options : LearnOptions
    """
    (part, known), (position, frame_start, time) = learned, given
    movie = movie_of(
        (position - position.mean(axis=0)) @ part.basis, frame_start, basis=part.basis, spacing=1.0,
        workers=options.workers,
    )  # fmt: skip
    shift = frame_shifts(movie.position, frame_start)
    movie, flow = without_jumps(movie, shift[movie.frame], np.abs(shift).max(axis=1) > 0)
    movie = replace(movie, time=time)
    fields = Fields.of(movie, workers=options.workers)
    candidates = first_candidates(movie, flow, max(options.nearest // 2, 1), options.workers)
    candidates = candidates.kept(options.fixed.reached(movie, flow, candidates))
    first = first_order(movie, candidates, flow, fields, options.workers)
    scale = np.ones(len(movie.intervals))
    scale[sample.frames.start : sample.frames.stop - 1] = known.motion.step_scale
    motion = replace(known.motion, step_scale=scale)
    model = Model(motion, known.association, Surroundings.uniform(first.flow))

    def once_more(posterior: LinkPosterior) -> LinkPosterior:
        found = settled(movie, model, posterior, sweeps=1, workers=options.workers)
        options.on_sweep(len(movie))
        return found

    posterior = once_more(narrowed(first.posterior))
    if options.gaps:
        posterior = with_gaps(movie, model, posterior, options)
    model = options.fixed.held(movie, adapted(movie, model, posterior, fields))
    return movie, model, once_more(posterior.kept(posterior.probability > options.dropped))
