"""Inference: the posterior over links under a model.

`records`         arguments of the kernels, as named tuples
`blocks`          blocks of rows for threads
`candidates`      candidate links in compressed rows and columns, and their search
`jpda`            one sweep: filters, smoother, belief propagation (kernels in `…_cpu`)
`posterior`       marginals of links; probabilities of death, birth and clutter; moments
`passes`          another solver: Kalman filters along the links of the previous pass
`decide`          links of maximum expected F1, by exact assignment

The entry point is `infer`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..model import Model
from ..model.advection import advected
from ..model.gate import CHANCE, reaches
from ..model.movie import Movie
from .candidates import Search, candidates_of, distinct, pairs_near
from .posterior import LinkPosterior, settled


@dataclass(frozen=True)
class Jpda:
    """Joint probabilistic data association by sweeps over the whole movie.

    Parameters
    ----------
    nearest : int
        Number of candidates per detection and lag, in each direction of time.
    sweeps : int
        Largest number of these.
    still : float
        Change of the marginals, per detection, at which to stop.
    workers : int
        Threads; they do not change the result.
    """

    nearest: int = 10
    sweeps: int = 10
    still: float = 1e-4
    workers: int = 1

    def candidates(self, movie: Movie, model: Model) -> LinkPosterior:
        """All candidates within the gate of the model, without probabilities yet."""
        chance, keys = CHANCE * float(np.median(movie.density)), [np.empty(0, np.int64)]
        flow, rows, longest = model.surroundings.flow, np.arange(len(movie)), model.association.longest
        for lag, way in enumerate(advected(movie, flow, rows, longest, workers=self.workers), 1):
            if model.association.delay[lag - 1] > 0:
                reach = reaches(movie, model.motion, lag, chance)
                search = Search(lag, self.nearest, movie.position + way, radius=reach)
                keys.append(pairs_near(movie, search, workers=self.workers))
        return LinkPosterior.unknown(candidates_of(distinct(keys), movie.frame))

    def posterior(self, movie: Movie, model: Model) -> LinkPosterior:
        """The probability of each candidate link of a movie, and of each birth, death and clutter."""
        start = self.candidates(movie, model)
        return settled(movie, model, start, sweeps=self.sweeps, still=self.still, workers=self.workers)


class Solver(Protocol):
    """A solver that computes a posterior: `Jpda` or `passes.Passes`."""

    def posterior(self, movie: Movie, model: Model) -> LinkPosterior:
        """The probability of each candidate link of a movie, and of each birth, death and clutter."""
        ...


def infer(movie: Movie, model: Model, solver: Solver | None = None) -> LinkPosterior:
    """The posterior over the links of a movie under a model.

    Parameters
    ----------
    movie : Movie
    model : Model
    solver : Solver, optional
        The method. Default: `Jpda`.

    Returns
    -------
    LinkPosterior

    References
    ----------
    J. Williams and R. Lau, Approximate evaluation of marginal association probabilities with belief
    propagation, IEEE Trans. Aerospace and Electronic Systems 50, 2014. J. Williams and R. Lau, Multiple scan
    data association by convex variational inference, arXiv 1607.07942.

    Examples
    --------
    >>> from outbid.model import AssociationModel, Model, MotionModel, Surroundings
    >>> from outbid.model.movie import movie_of
    >>> movie = movie_of(np.array([[0.0], [9.0], [0.5], [9.5]]), np.array([0, 2, 4]))
    >>> one = np.ones(1)
    >>> steps = MotionModel(0.01 * one[:, None], 0 * one, one, one, 0.001 * one, one)
    >>> still = Surroundings.uniform(np.zeros((4, 1)))
    >>> model = Model(steps, AssociationModel(0.9 * one, 0.9 * one, 0.01), still)
    >>> found = infer(movie, model)
    >>> found.candidates.head[found.probability > 0.5].tolist()
    [2, 3]
    """
    return (solver or Jpda()).posterior(movie, model)
