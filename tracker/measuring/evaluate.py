"""Evaluate a movie: fit motions, take means and curves, and put all into tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .choice import Fits, diffusion_of
from .columns import COMPARED, FITTED, PATHS, SHAPES
from .curves import Point, curves_of, on_fit, table_of_curves
from .draws import DRAWS, Variants
from .edge import LEVELS, confidence, persistence_limits, symmetric_error
from .families import cycles_so_far, families, median_cycle, safety, starts_and_ends
from .groups import Estimate, Samples, mean_of, ratio, shifted
from .likelihood import FRACTIONAL, PERSISTENT, Pieces, Sums
from .measures import Measures
from .paths import confinement, mean_feature, paths, pieces_of
from .recording import Recording
from .replicates import compared, over_movies
from .seen import columns_of_detections
from .single import parameters, scales
from .surroundings import Neighbourhood, Surroundings, stays
from .tables import table_of

Columns = dict[str, Any]
_LIMITS = tuple(f"persistence_{end}_{level:.0%}".rstrip("%") for level in LEVELS for end in ("low", "high"))


@dataclass(frozen=True, eq=False)
class _Part:
    """Some of the tracks, (V,) bool: those of a group, or of a movie of it; weights, fits, second moments."""

    inside: NDArray[np.bool_]
    weights: Samples
    fits: Fits
    sums: Sums

    def of_movie(self, movie: Recording, pieces: Pieces, number: int) -> _Part:
        """Its tracks in a movie; their motion is that of the group, so that movies can be compared."""
        one = _Part.of(movie, pieces, self.inside & (movie.movie == number))
        return replace(one, fits=replace(one.fits, weight=self.fits.weight))

    @classmethod
    def of(cls, movie: Recording, pieces: Pieces, inside: NDArray[np.bool_]) -> _Part:
        """Draw the samples, and fit every motion to the steps."""
        weights = Samples.of(movie.variants, inside, movie.movie, movie.rng)
        own, often = pieces.take(inside), weights.drawn.mean(axis=0)
        return cls(inside, weights, Fits.of(own, often), Sums.of(own, often))


def evaluated(movie: Recording, remarks: list[str], around: Surroundings) -> Measures:
    """All tables of a movie, or of conditions of several movies each."""
    near = None if around.contact is None else Neighbourhood.of(movie, around.contact)
    inside = around.inside(movie)
    simple = paths(movie.position, movie.frame, movie.owner, movie.lag, movie.time)
    motion = {name + end: np.full(len(movie.group), np.nan) for name in FITTED for end in ("", "_error")}
    simple["confinement"] = np.full(len(movie.group), np.nan)
    pieces = pieces_of(movie.position, movie.frame, movie.owner, movie.lag, len(movie.group))
    every: dict[str, dict[str, Estimate]] = {}
    rows: list[Columns] = []
    each: list[Columns] = []
    regions: list[Columns] = []
    curves: list[Point] = []
    for index, name in enumerate(movie.labels.groups):
        whole = _Part.of(movie, pieces, movie.group == index)
        numbers = np.unique(movie.movie[whole.inside])
        parts = [whole]
        if len(numbers) > 1:
            parts = [whole.of_movie(movie, pieces, number) for number in numbers]
        for part in parts:
            _fit_tracks(movie, pieces.take(part.inside), part, (motion, simple))
        found = [_estimates(movie, part, simple, near) for part in parts]
        together = found[0] if len(parts) == 1 else _estimates(movie, whole, simple, near)
        every[name] = {key: over_movies([one[key] for one in found], together[key]) for key in together}
        row = _row(movie, whole, every[name])
        rows.append({"group": name, "movies": float(max(len(numbers), 1)), **row})
        each += [
            {"group": name, "movie": movie.labels.movies[number], **_row(movie, part, estimates)}
            for number, part, estimates in zip(numbers, parts, found, strict=False)
        ]
        curves += curves_of(movie, name, whole.weights, whole.fits.best, near)
        regions += [{"group": name, **row} for row in stays(movie, whole.weights, inside)]
    linking = _with_linking(movie.variants, motion)
    if len(each) > len(rows):
        _add_spread(rows, every)
    return Measures(
        table_of(_track_columns(movie, simple, motion | linking), movie.scale),
        _table(movie, rows),
        _table(movie, each),
        table_of_curves(curves),
        table_of(compared(every), movie.scale),
        _table(movie, regions),
        table_of(columns_of_detections(movie, {} if near is None else near.columns, inside), movie.scale),
        (*remarks, *_on_motion(rows), *on_fit(curves), *_on_linking(movie, linking, every)),
    )


def _table(movie: Recording, rows: list[Columns]) -> Any:
    return table_of({key: [row[key] for row in rows] for key in (rows[0] if rows else ())}, movie.scale)


def _add_spread(rows: list[Columns], every: dict[str, dict[str, Estimate]]) -> None:
    """Add to the rows of conditions how values spread between movies, and the mean error within a movie."""
    for row, found in zip(rows, every.values(), strict=True):
        for name, one in found.items():
            row[f"{name}_between_movies"], row[f"{name}_within_movies"] = one.between, one.within


def _fit_tracks(movie: Recording, pieces: Pieces, part: _Part, columns: tuple[Columns, Columns]) -> None:
    """Diffusion, confinement, exponent and persistence of the tracks of a part, into the columns."""
    (motion, simple), inside, fits = columns, part.inside, part.fits
    free, chosen = fits.fit["diffusion"], fits.diffusing
    if free is not None:
        relative = scales(pieces, free)
        steps = 2 * len(movie.axes) * diffusion_of(free, movie.interval)[0] * relative[0] * movie.interval
        noise = float(np.maximum(free.scale * free.ratio, 0).sum())
        confined = confinement(simple, steps, noise, simple["duration"] / movie.interval + 1)
        simple["confinement"][inside] = confined[inside]
        if chosen is not None:
            relative = relative if chosen is free else scales(pieces, chosen)
            value = diffusion_of(chosen, movie.interval)[0]
            _put(motion, "diffusion", [value * one for one in relative], inside)
    exponent, persistence = fits.fit["anomalous"], fits.fit["persistent"]
    if exponent is not None:
        _put(motion, "exponent", parameters(pieces, exponent, FRACTIONAL), inside)
    if persistence is not None:
        logarithm, error, edge = parameters(pieces, persistence, PERSISTENT)
        time, none = np.exp(logarithm) * movie.interval, logarithm <= PERSISTENT.low
        reaches = confidence(edge, edge, np.ones(len(edge), np.bool_)) <= LEVELS[1]
        error = np.where(none, np.nan, np.maximum(time * error, np.where(reaches, time / 2, 0.0)))
        _put(motion, "persistence", (np.where(none, 0.0, time), error), inside)


def _put(motion: Columns, name: str, found: Any, inside: NDArray) -> None:
    motion[name][inside], motion[name + "_error"][inside] = found[0][inside], found[1][inside]


def _with_linking(variants: Variants, motion: Columns) -> Columns:
    """Errors that include the spread over draws, and the share of linking in the variance of diffusion."""
    found: Columns = {}
    for name in FITTED:
        fit, values = motion[name + "_error"][variants.own], motion[name][variants.instead]
        finite = np.isfinite(values)
        some = np.maximum(finite.sum(axis=0), 1)
        mean = np.where(finite, values, 0).sum(axis=0) / some
        spread = (np.where(finite, values - mean, 0) ** 2).sum(axis=0) / np.maximum(some - 1, 1)
        total = np.square(fit) + spread
        found[name + "_error"] = np.sqrt(total)
        if name == "diffusion":
            with np.errstate(invalid="ignore"):
                found["linking_share"] = spread / total if len(values) > 1 else np.full(len(fit), np.nan)
    return found


def _estimates(
    movie: Recording, part: _Part, simple: Columns, near: Neighbourhood | None
) -> dict[str, Estimate]:
    """The quantities of a part that are compared."""
    weights, fits = part.weights, part.fits
    exponent, persistence = fits.fit["anomalous"], fits.fit["persistent"]
    found = dict.fromkeys(FITTED, Estimate.unknown())
    if fits.diffusing is not None:
        found["diffusion"] = shifted(weights, *diffusion_of(fits.diffusing, movie.interval))
    if exponent is not None:
        found["exponent"] = shifted(weights, exponent.parameter, exponent.influence[:, 0])
        if persistence is not None and fits.fit["diffusion"] is not None:
            spread = found["exponent"].error / exponent.error
            found["persistence"] = _persistence(movie, part, spread)
    moving = simple["duration"] > 0
    found["speed_mean"] = ratio(
        weights, np.where(moving, simple["path"], 0), np.where(moving, simple["duration"], 0)
    )
    for name in COMPARED[len(found) :]:
        found[name] = mean_of(weights, np.where(moving, simple[name], np.nan))
    return found if near is None else found | near.estimates(weights)


def _persistence(movie: Recording, part: _Part, spread: float) -> Estimate:
    """The persistence time of a part; `spread` is as for `persistence_limits`, 1 where it is not known."""
    walk, free = part.fits.fit["persistent"], part.fits.fit["diffusion"]
    assert walk is not None
    assert free is not None
    none = walk.parameter < PERSISTENT.low + 1e-3
    time = 0.0 if none else float(np.exp(walk.parameter)) * movie.interval
    one = shifted(part.weights, time, walk.influence[:, 0] * (np.nan if none else time))
    limits = movie.interval * persistence_limits(
        part.sums, walk, free, max(np.nan_to_num(spread, nan=1.0), 1.0)
    )
    return replace(one, error=symmetric_error(time, limits), limits=limits)


def _row(movie: Recording, part: _Part, found: dict[str, Estimate]) -> Columns:
    """One row of the table of groups, or of movies."""
    inside, fit = part.inside[movie.variants.own], part.fits.best
    size = np.diff(movie.variants.start)[movie.variants.own]
    chosen = part.fits.chosen
    row: Columns = {
        "tracks": float(inside.sum()), "detections": float(size[inside].sum()), "motion": chosen,
        "motion_weight": np.nan if chosen is None else part.fits.weight[chosen],
    }  # fmt: skip
    for name, one in found.items():
        row[name], row[name + "_error"] = one.value, one.error
        if name == "persistence":
            row |= dict(zip(_LIMITS, one.limits.tolist(), strict=True))
    row["linking_share"] = _share(found["diffusion"])
    noise = [] if fit is None else np.sqrt(np.maximum(fit.scale * fit.ratio, 0)).tolist()
    error = dict(zip(movie.axes, noise, strict=False))
    row |= {f"localisation_error_{axis}": error.get(axis, np.nan) for axis in "zyx"}
    born, lost = starts_and_ends(movie.tracks)
    family = families(movie.tracks, movie.detected)
    cycle = family["cycle_time"][inside]
    lasting = cycles_so_far(movie.tracks, family, movie.detected)[inside]
    row["cycle_time_median"], row["cycle_time_median_error"] = median_cycle(
        lasting, np.isfinite(cycle), movie.rng
    )
    row["cycles"] = float(np.isfinite(cycle).sum())
    row["divisions"] = float((family["daughters"][inside] > 0).sum())
    row["appearances"], row["disappearances"] = float(born[inside].sum()), float(lost[inside].sum())
    return row


def _share(one: Estimate) -> float:
    """Share of linking in the variance of an estimate."""
    return min(one.linking**2 / one.error**2, 1.0) if one.error > 0 else np.nan


def _track_columns(movie: Recording, simple: Columns, motion: Columns) -> Columns:
    """Columns of the table of tracks; `motion` has some of the variants (V,), and some of the tracks (T,)."""
    own, first = movie.variants.own, {}
    if len(movie.labels.groups) > 1:
        first["group"] = [movie.labels.groups[index] for index in movie.group[own]]
    if len(movie.labels.movies) > len(movie.labels.groups):
        first["movie"] = [movie.labels.movies[index] for index in movie.movie[own]]
    family = families(movie.tracks, movie.detected)
    mother = family["mother"]
    finite = np.isfinite(mother)
    mother[finite] = movie.own[mother[finite].astype(np.int64)]
    columns = first | {"track_id": movie.own.astype(np.float64)}
    columns |= {name: simple[name][own] for name in PATHS}
    for name in FITTED:
        columns |= {name: motion[name][own], name + "_error": motion[name + "_error"]}
    columns["linking_share"] = motion["linking_share"]
    columns |= {name: simple[name][own] for name in SHAPES}
    columns |= family | {"no_wrong_link": safety(movie.tracks)}
    for name, values in movie.tracks.detections.features.items():
        if values.dtype.kind in "iufb":
            columns[f"mean_{name}"] = mean_feature(values[movie.variants.rows], movie.owner)[own]
    return columns


def _on_motion(rows: list[Columns]) -> list[str]:
    """A sentence on each group that has no diffusion coefficient."""
    return [
        f"Group {row['group']} moves anomalously, with an exponent of {row['exponent']:.2f} (weight "
        f"{row['motion_weight']:.2f} beside the other motions), so it has no diffusion coefficient."
        for row in rows
        if row["motion"] == "anomalous"
    ]


def _on_linking(movie: Recording, linking: Columns, every: dict[str, dict[str, Estimate]]) -> list[str]:
    """Sentences on what the errors include of linking, and where it dominates."""
    chance = movie.tracks.link_probability
    if chance is None:
        return [
            "The links have no probabilities (tracks of another program, or of a fixed max distance): "
            "errors exclude those of linking."
        ]
    if len(movie.variants.drawn) == 1:
        return ["All links are certain: linking adds no errors."]
    messages = [
        f"Errors include linking, by {DRAWS} draws of the links; about {(1 - chance).sum():,.0f} of "
        f"{len(chance):,} links are expected to be wrong."
    ]
    share = linking["linking_share"][np.isfinite(linking["linking_share"])]
    if (share > 0.5).any():
        messages.append(
            "Linking is the larger part of the error of the diffusion coefficient in "
            f"{(share > 0.5).sum():,} of {len(share):,} tracks."
        )
    for name, found in every.items():
        worst = [quantity for quantity, one in found.items() if _share(one) > 0.5]
        if worst:
            messages.append(f"Linking dominates the error of {', '.join(worst)} in group {name}.")
    return messages
