"""EM of the daughter model and of births and deaths that are no divisions, beside the links of a sweep."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import LINK, LINK_BY_SIDE, ROW, ROW_BY_SIDE, Arrays, array_module
from ...compute.tolerances import NEGLIGIBLE, ROUNDS, TINY
from ..inference.candidates import distinct
from ..inference.features import odds_of_clutter
from ..inference.jpda import no_link
from ..inference.posterior import LinkPosterior
from ..learn.region import left_out
from ..model import Model
from ..model.movie import Movie, summed
from .candidates import Divisions
from .daughters import DaughterModel, log_weight, m_step
from .packing import Beliefs, Pairs, log_partition, propagated


@dataclass(frozen=True, eq=False)
class Context(Arrays):
    """What competes with divisions: the links of a sweep, deaths, births and clutter.

    Parameters
    ----------
    links : (E,) int64 array
        Places of these links among the candidates of the posterior.
    tail, head : (E,) int64 arrays
        Candidate links.
    ratio : (E,) float64 array
        Their likelihood ratios against chance.
    competing : (2, E) float64 array
        Weights of what competes with them.
    unlinked : (2, N) float64 array
        Weights of death and birth under the model of links, without divisions.
    clutter : (2, N) float64 array
        Weights of clutter.
    scaled : (2, N) bool array
        Whether births and deaths that are no divisions are fewer: within the movie.
    clutter_share : (N,) float64 array
        Probability of clutter, by the columns of each detection.
    others : (2, N) float64 array
        Weights of links that are left out, to the power 1 / omega.
    omega : float
        Exponent of competing weights in the sweep.
    """

    links: NDArray[np.int64] = field(metadata=LINK)
    tail: NDArray[np.int64] = field(metadata=LINK)
    head: NDArray[np.int64] = field(metadata=LINK)
    ratio: NDArray[np.float64] = field(metadata=LINK)
    competing: NDArray[np.float64] = field(metadata=LINK_BY_SIDE)
    unlinked: NDArray[np.float64] = field(metadata=ROW_BY_SIDE)
    clutter: NDArray[np.float64] = field(metadata=ROW_BY_SIDE)
    scaled: NDArray[np.bool_] = field(metadata=ROW_BY_SIDE)
    clutter_share: NDArray[np.float64] = field(metadata=ROW)
    others: NDArray[np.float64] = field(metadata=ROW_BY_SIDE)
    omega: float

    @classmethod
    def of(cls, movie: Movie, model: Model, posterior: LinkPosterior) -> Context:
        """From the posterior of a sweep."""
        tail, head = (rows.astype(np.int64) for rows in posterior.candidates[:2])
        xp = array_module(tail)
        odds = xp.broadcast_to(xp.asarray(odds_of_clutter(movie, model)), (len(movie),))
        return cls(
            links=xp.arange(len(tail)), tail=tail, head=head, ratio=posterior.ratio,
            competing=posterior.competing, unlinked=np.stack(no_link(movie, model)),
            clutter=posterior.clutter_weight,
            scaled=np.stack([movie.left > 0, movie.frame > 0]), clutter_share=odds / (1 + odds),
            others=xp.zeros((2, len(movie))), omega=posterior.omega,
        )  # fmt: skip

    def near(self, divisions: Divisions, inside: NDArray[np.bool_] | bool = True) -> Context:
        """The links in the rows of mothers and in the columns of daughters; all others keep their weights.

        Births and deaths are learned inside (2, N).
        """
        row, column = np.zeros_like(self.unlinked, bool)
        row[divisions.mother] = column[divisions.first] = column[divisions.second] = True
        keep = row[self.tail] | column[self.head]
        weights = self.ratio, self.competing, self.omega
        others = self.others + left_out((self.tail, self.head), ~keep, weights, len(row))
        return replace(self.take("link", keep), scaled=self.scaled & inside, others=others)

    def of_rows(self, divisions: Divisions) -> tuple[Context, Divisions]:
        """The same without the detections that take no part, which are most in a large movie."""
        part: NDArray[np.bool_] = self.scaled[0] | self.scaled[1]
        for end in (self.tail, self.head, *divisions.slots):
            part[end] = True
        new = np.cumsum(part) - 1
        mother, first, second = new[divisions.slots]
        context = replace(self.take("row", part), tail=new[self.tail], head=new[self.head])
        return context, replace(divisions, mother=mother, first=first, second=second)

    def no_pair(self, model: DaughterModel) -> NDArray[np.float64]:
        """(2, N) weights of no division and none of these links."""
        unlinked = self.deaths_and_births(model) + self.clutter
        weight: NDArray[np.float64] = (unlinked ** (1 / self.omega) + self.others) ** self.omega
        return weight

    def deaths_and_births(self, model: DaughterModel) -> NDArray[np.float64]:
        """(2, N) weights of death and birth, without clutter and divisions."""
        factor = array_module(self.unlinked).asarray([[model.death], [model.birth]])
        return np.where(self.scaled, factor, 1.0) * self.unlinked

    def pairs(self, divisions: Divisions) -> Pairs:
        """Candidate links, and pairs that occur in divisions only, after them."""
        count = np.int64(self.unlinked.shape[1])
        links = self.tail * count + self.head
        wanted = divisions.mother * count + np.stack([divisions.first, divisions.second])
        more, xp = distinct([wanted.ravel()]), array_module(links)
        at = np.searchsorted(links, more)
        more = more[np.concatenate([links, xp.full(1, -1)])[at] != more]
        every = np.concatenate([links, more])
        order = np.argsort(every)
        row, column = np.divmod(every, count)
        one = xp.ones((2, len(more)))
        return Pairs(
            row=row, column=column, ratio=np.concatenate([np.maximum(self.ratio, TINY), one[0]]),
            link=np.concatenate([np.ones_like(self.ratio), 0 * one[0]]),
            competing=np.concatenate([self.competing, one], axis=1),
            daughters=order[np.searchsorted(every[order], wanted)], weight=xp.zeros(len(divisions)),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class DivisionFit:
    """Divisions under a daughter model, in competition with links.

    Parameters
    ----------
    divisions : Divisions
    model : DaughterModel
    pairs : Pairs
        Links and divisions.
    beliefs : Beliefs
        Their probabilities.
    next_model : DaughterModel
        After the M-step.
    """

    divisions: Divisions
    model: DaughterModel
    pairs: Pairs
    beliefs: Beliefs
    next_model: DaughterModel

    @property
    def probability(self) -> NDArray[np.float64]:
        """(P,) of each division."""
        return self.beliefs.division


def fitted(
    context: Context, divisions: Divisions, model: DaughterModel, log_factor: NDArray[np.float64] | float,
    rounds: int = ROUNDS,
) -> DivisionFit:  # fmt: skip
    """EM from an initial model, in so many rounds at most.

    log_factor (P,) are log weights in addition to those of the model, such as those of ages.
    """
    pairs, last = context.pairs(divisions), -1.0
    for _ in range(rounds):
        used, (pairs, beliefs) = model, _believed(context, divisions, pairs, model, log_factor)
        model = _with_rates(context, model, pairs, beliefs)
        model = m_step(divisions, beliefs.division, model, float(context.scaled[0].sum()))
        expected = float(beliefs.division.sum())
        if abs(expected - last) < NEGLIGIBLE * max(last, 1.0):
            break
        last = expected
    return DivisionFit(divisions=divisions, model=used, pairs=pairs, beliefs=beliefs, next_model=model)


def under(
    context: Context, divisions: Divisions, model: DaughterModel, log_factor: NDArray[np.float64]
) -> DivisionFit:
    """The same under a model that is held."""
    pairs, beliefs = _believed(context, divisions, context.pairs(divisions), model, log_factor)
    return DivisionFit(divisions=divisions, model=model, pairs=pairs, beliefs=beliefs, next_model=model)


def _believed(
    context: Context, divisions: Divisions, pairs: Pairs, model: DaughterModel,
    log_factor: NDArray[np.float64] | float,
) -> tuple[Pairs, Beliefs]:  # fmt: skip
    """The pairs after rounds of belief propagation under a model, and their probabilities."""
    unlinked = context.no_pair(model)
    pairs = pairs.weighing(log_weight(divisions, model) + log_factor, context.omega)
    pairs = propagated(unlinked, pairs, context.omega)
    return pairs, pairs.beliefs(unlinked, context.omega)


def used_slots(pairs: Pairs, beliefs: Beliefs, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(2, N) probabilities that rows and columns are used by links, and by divisions."""
    linked = [summed(side, beliefs.link, count) for side in (pairs.row, pairs.column)]
    mothers, daughters = pairs.row[pairs.daughters[0]], pairs.column[pairs.daughters].ravel()
    divided = [
        summed(mothers, beliefs.division, count), summed(daughters, np.tile(beliefs.division, 2), count)
    ]  # fmt: skip
    return np.stack(linked), np.stack(divided)


def _with_rates(context: Context, model: DaughterModel, pairs: Pairs, beliefs: Beliefs) -> DaughterModel:
    """The M-step of births and deaths: their expected numbers, relative to those of the model of links."""
    linked, divided = used_slots(pairs, beliefs, context.unlinked.shape[1])
    weight = context.deaths_and_births(model)
    unlinked = weight + context.clutter
    share = weight / unlinked * (unlinked / context.no_pair(model)) ** (1 / context.omega)
    expected = np.clip(1 - linked - divided, 0, 1) * share
    death, birth = (
        (expected[side][inner].sum() + 0.5) / (context.unlinked[side][inner].sum() + 0.5)
        for side, inner in enumerate(context.scaled)
    )
    return replace(model, birth=float(birth), death=float(death))


def bethe_evidence(context: Context, fit: DivisionFit) -> float:
    """Log likelihood of links and divisions, up to a constant.

    Tracks that begin are a Poisson process. The weights of the row of a detection sum to one before they are
    divided by the density of chance: the last sum accounts for changed deaths and for divisions.
    """
    model, (deaths, _) = fit.model, context.unlinked * context.scaled
    pairs = replace(fit.pairs, weight=fit.pairs.weight**context.omega)  # V with the exponent 1
    z = log_partition(context.no_pair(model), pairs, ROUNDS)
    births = ((1 - context.clutter_share) * (context.deaths_and_births(model) * context.scaled)[1]).sum()
    rate = model.rate if len(fit.divisions) else 0.0
    more = np.log1p((model.death - 1) * deaths + rate)
    return float(z - births - more.sum())


def no_link_beside(context: Context, fit: DivisionFit) -> NDArray[np.float64]:
    """(2, N) weights of no successor and of no predecessor for the next sweep: divisions are among them."""
    incoming_weight = summed(fit.pairs.column, fit.beliefs.daughter, context.unlinked.shape[1])
    incoming = np.stack([fit.beliefs.rows.divided, incoming_weight])
    ends: NDArray[np.float64] = context.deaths_and_births(fit.next_model) ** (1 / context.omega) + incoming
    return ends**context.omega


def beside(posterior: LinkPosterior, context: Context, fit: DivisionFit) -> LinkPosterior:
    """The posterior of links in competition with divisions, for M-steps and the next sweep.

    Mothers count as deaths there and daughters as births, as the model of links counts them.
    """
    pairs, beliefs, count = fit.pairs, fit.beliefs, len(context.unlinked[0])
    probability, competing = posterior.probability.copy(), posterior.competing.copy()
    here, many = context.links, len(context.links)
    probability[here] = beliefs.link[:many]
    least = context.no_pair(fit.model)[0] ** (1 / context.omega)  # of a sure link the difference may be 0
    rest = beliefs.rows.total[pairs.row] - beliefs.rows.each
    competing[0, here] = np.maximum(rest, least[pairs.row])[:many]
    competing[1, here] = (pairs.competing[1] + beliefs.daughter)[:many]
    posterior = replace(posterior, probability=probability, competing=competing)
    linked, (_, divided) = np.stack(posterior.degree_probability()), used_slots(pairs, beliefs, count)
    weight = context.deaths_and_births(fit.model)
    clutter = (np.clip(1 - linked - divided, 0, 1) * context.clutter / (weight + context.clutter))[0]
    death, birth = np.maximum(1 - linked - clutter, 0)
    return replace(posterior, clutter=clutter, death=death, birth=birth)
