"""Evaluate a movie: fit motions, take means and curves, and put all into tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..particles.reliability import rounded
from ..particles.tracks import Tracks
from .draws import DRAWS, Variants, variants_of
from .families import families, safety, starts_and_ends
from .groups import Estimate, Samples, compared, distribution, lagged, mean_of, median_of, ratio, shifted
from .likelihood import FRACTIONAL, PERSISTENT, Floats, Pieces
from .paths import confinement, mean_feature, most_frequent, paths, pieces_of, steps_of, usual_lag
from .pooled import Pooled, pooled
from .scales import Scale
from .single import parameters, scales
from .tables import table_of

if TYPE_CHECKING:
    import pyarrow as pa

Columns = dict[str, Any]
_RESOLVED = 0.5
"""Intervals: shorter persistence times leave no correlation of steps that frames show."""
_FITTED = ("diffusion", "exponent", "persistence")
_MEANS = ("straightness", "turning_angle", "confinement", "radius_of_gyration")


@dataclass(frozen=True, eq=False)
class Measures:
    """Tables of what was measured; every column has its unit in its name and in its metadata.

    Parameters
    ----------
    tracks : pyarrow.Table
        One row a track.
    groups : pyarrow.Table
        One row a movie or group.
    curves : pyarrow.Table
        Mean square displacement, velocity autocorrelation, distributions: one row a point of a curve.
    comparison : pyarrow.Table
        One row a quantity and a pair of groups.
    remarks : tuple of str
        What was corrected, what the errors include, and where linking is the larger part of them.
    """

    tracks: pa.Table
    groups: pa.Table
    curves: pa.Table
    comparison: pa.Table
    remarks: tuple[str, ...]

    @property
    def sheets(self) -> dict[str, pa.Table]:
        """All tables by name, the one of tracks first."""
        return {name: getattr(self, name) for name in ("tracks", "groups", "curves", "comparison")}

    def __str__(self) -> str:
        units = {field.name: field.metadata[b"unit"].decode() for field in self.groups.schema}
        lines = []
        for row in self.groups.to_pylist():
            messages = [f"{row['group']}: {row['tracks']} tracks"]
            for quantity in _FITTED:
                name = next(name for name in units if name.startswith(quantity))
                error = next(name for name in units if name.startswith(f"{quantity}_error"))
                if row[name] is not None:
                    within = "" if row[error] is None else f" ± {rounded(row[error])}"
                    unit = units[name].replace("um", "µm").replace("^2", "²")
                    messages.append(f"{quantity} {row[name]:.3g}{within} {unit}".rstrip())
            lines.append(", ".join(messages))
        return "\n".join(lines)

    def to_dataframe(self) -> Any:
        """The table of tracks as a pandas DataFrame."""
        from ..particles.tables import pandas_of

        return pandas_of(self.tracks)


@dataclass(frozen=True, eq=False)
class Recording:
    """What all measures are made of: the tracks that occur in draws of the links, and the groups.

    Parameters
    ----------
    tracks : Tracks
    own : (T,) int64 array
        Number of each track in its own file.
    variants : Variants
    position, frame, owner : arrays
        Of the rows of the variants, along the axes that count.
    axes : str
    lag : int
        Frame numbers of an interval.
    scale : Scale
    names : list of str
        The groups.
    group : (V,) int64 array
        Group of each variant.
    rng : Generator
    """

    tracks: Tracks
    own: NDArray[np.int64]
    variants: Variants
    position: Floats
    frame: NDArray[np.int64]
    owner: NDArray[np.int64]
    axes: str
    lag: int
    scale: Scale
    names: list[str]
    group: NDArray[np.int64]
    rng: np.random.Generator

    @classmethod
    def of(
        cls,
        tracks: Tracks,
        label: NDArray,
        names: list[str],
        own: NDArray,
        axes: str,
        scale: Scale,
        seed: int,
    ) -> Recording:
        """Draw the links of tracks; `label` is the group of each detection, an index into the names."""
        rng = np.random.default_rng(seed)
        variants = variants_of(tracks, rng)
        rows, first = variants.rows, variants.rows[variants.start[:-1]]
        frame = tracks.detections.frame[rows].astype(np.int64)
        position = tracks.detections.position[rows][:, ["zyx".index(axis) for axis in axes]]
        lag = usual_lag(frame, variants.owner)
        group, _ = most_frequent(label[rows], variants.owner, len(first))
        return cls(
            tracks, own[first[variants.own]], variants, position, frame, variants.owner, axes, lag, scale,
            names, group, rng,
        )  # fmt: skip

    @property
    def interval(self) -> float:
        """Time of an interval."""
        return self.lag * self.scale.frame


def evaluated(movie: Recording, remarks: list[str]) -> Measures:
    """All tables of a movie."""
    simple = paths(movie.position, movie.frame, movie.owner, movie.lag, movie.scale.frame)
    motion = {name + end: np.full(len(movie.group), np.nan) for name in _FITTED for end in ("", "_error")}
    simple["confinement"] = np.full(len(movie.group), np.nan)
    every, rows, curves = {}, [], []
    pieces = pieces_of(movie.position, movie.frame, movie.owner, movie.lag, len(movie.group))
    for index, name in enumerate(movie.names):
        inside = movie.group == index
        weights, some = Samples.of(movie.variants, inside, movie.rng), pieces.take(inside)
        mean = weights.drawn.mean(axis=0)
        anomalous = pooled(some, mean, FRACTIONAL)
        fits = pooled(some, mean, FRACTIONAL, 1.0), anomalous, pooled(some, mean, PERSISTENT)
        _fit_tracks(movie, some, fits, (motion, simple), inside)
        every[name] = _estimates(movie, fits, weights, simple)
        rows.append(_row(movie, index, fits[0], every[name]))
        curves += _curves(movie, name, weights, anomalous)
    linking = _with_linking(movie.variants, motion)
    messages = [*remarks, *_on_linking(movie, linking, every)]
    return Measures(
        table_of(_track_columns(movie, simple, motion | linking), movie.scale),
        table_of({key: [row[key] for row in rows] for key in (rows[0] if rows else ())}, movie.scale),
        _table_of_curves(curves),
        table_of(compared(every), movie.scale),
        tuple(messages),
    )


_Fits = tuple[Pooled | None, Pooled | None, Pooled | None]


def _fit_tracks(
    movie: Recording, pieces: Pieces, fits: _Fits, columns: tuple[Columns, Columns], inside: NDArray
) -> None:
    """Diffusion, confinement, exponent and persistence of the tracks of a group, into the columns."""
    (diffusion, exponent, persistence), (motion, simple) = fits, columns
    if diffusion is not None:
        unit = diffusion.scale.mean() / (2 * movie.interval)
        found = [unit * each for each in scales(pieces, diffusion)]
        _put(motion, "diffusion", found, inside)
        steps = 2 * len(movie.axes) * motion["diffusion"] * movie.interval
        noise = float(np.maximum(diffusion.scale * diffusion.ratio, 0).sum())
        confined = confinement(simple, steps, noise, simple["duration"] / movie.interval + 1)
        simple["confinement"][inside] = confined[inside]
    if exponent is not None:
        _put(motion, "exponent", parameters(pieces, exponent, FRACTIONAL), inside)
    if persistence is not None:
        logarithm, error = parameters(pieces, persistence, PERSISTENT)
        time = np.exp(logarithm) * movie.interval
        none = logarithm <= PERSISTENT.low
        error = np.where(none, np.nan, _unresolved(time, time * error, movie.interval))
        _put(motion, "persistence", (np.where(none, 0.0, time), error), inside)


def _unresolved(time: Floats, error: Floats, interval: float) -> Floats:
    """The error of a persistence time; at least the time itself where frames cannot resolve it.

    Times far below the interval all mean uncorrelated steps: plain diffusion fits one of them by chance.
    """
    return np.where(time < _RESOLVED * interval, np.maximum(error, time), error)


def _put(motion: Columns, name: str, found: Any, inside: NDArray) -> None:
    motion[name][inside], motion[name + "_error"][inside] = found[0][inside], found[1][inside]


def _with_linking(variants: Variants, motion: Columns) -> Columns:
    """Errors that include the spread over draws, and the share of linking in the variance of diffusion."""
    found: Columns = {}
    for name in _FITTED:
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


def _estimates(movie: Recording, fits: _Fits, weights: Samples, simple: Columns) -> dict[str, Estimate]:
    """The quantities of a group that are compared."""
    diffusion, exponent, persistence = fits
    found = dict.fromkeys(_FITTED, Estimate.unknown())
    if diffusion is not None:
        unit = 1 / (2 * movie.interval * len(movie.axes))
        influence = (diffusion.influence[:, 1:] * diffusion.scale).sum(axis=1) * unit
        found["diffusion"] = shifted(weights, float(diffusion.scale.sum()) * unit, influence)
    if exponent is not None:
        found["exponent"] = shifted(weights, exponent.parameter, exponent.influence[:, 0])
    if persistence is not None:
        none = persistence.parameter < PERSISTENT.low + 1e-3
        time = 0.0 if none else float(np.exp(persistence.parameter)) * movie.interval
        one = shifted(weights, time, persistence.influence[:, 0] * (np.nan if none else time))
        error = float(_unresolved(np.array(time), np.array(one.error), movie.interval))
        found["persistence"] = replace(one, error=error)
    moving = simple["duration"] > 0
    found["speed_mean"] = ratio(
        weights, np.where(moving, simple["path"], 0), np.where(moving, simple["duration"], 0)
    )
    for name in _MEANS:
        found[name] = mean_of(weights, np.where(moving, simple[name], np.nan))
    return found


def _row(movie: Recording, index: int, fit: Pooled | None, found: dict[str, Estimate]) -> Columns:
    """One row of the table of groups."""
    inside = movie.group[movie.variants.own] == index
    size = np.diff(movie.variants.start)[movie.variants.own]
    row: Columns = {
        "group": movie.names[index], "tracks": float(inside.sum()), "detections": float(size[inside].sum())
    }  # fmt: skip
    for name in (*_FITTED, "speed_mean", *_MEANS):
        row[name], row[name + "_error"] = found[name].value, found[name].error
    row["linking_share"] = _share(found["diffusion"])
    noise = [] if fit is None else np.sqrt(np.maximum(fit.scale * fit.ratio, 0)).tolist()
    error = dict(zip(movie.axes, noise, strict=False))
    row |= {f"localisation_error_{axis}": error.get(axis, np.nan) for axis in "zyx"}
    born, lost = starts_and_ends(movie.tracks)
    family = families(movie.tracks, movie.scale.frame)
    cycle = family["cycle_time"][inside]
    row["cycle_time_median"], row["cycle_time_median_error"] = median_of(cycle, movie.rng)
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
    if len(movie.names) > 1:
        first["group"] = [movie.names[index] for index in movie.group[own]]
    family = families(movie.tracks, movie.scale.frame)
    mother = family["mother"]
    finite = np.isfinite(mother)
    mother[finite] = movie.own[mother[finite].astype(np.int64)]
    columns = first | {"track_id": movie.own.astype(np.float64)}
    columns |= {name: simple[name][own] for name in list(simple)[:9]}
    for name in _FITTED:
        columns |= {name: motion[name][own], name + "_error": motion[name + "_error"]}
    columns["linking_share"] = motion["linking_share"]
    columns |= {name: simple[name][own] for name in list(simple)[9:]}
    columns |= family | {"no_wrong_link": safety(movie.tracks)}
    for name, values in movie.tracks.detections.features.items():
        if values.dtype.kind in "iufb":
            columns[f"mean_{name}"] = mean_feature(values[movie.variants.rows], movie.owner)[own]
    return columns


_Point = tuple[str, str, float, float, float, float, str, str]


def _curves(movie: Recording, name: str, weights: Samples, fit: Pooled | None) -> list[_Point]:
    """Points of the curves of a group."""
    scale, time = movie.scale, movie.interval
    square, product, pairs, products = lagged(
        movie.position, movie.frame, movie.owner, movie.lag, len(movie.group)
    )
    points: list[_Point] = []

    def add(curve: str, at: float, one: Estimate, many: float, units: tuple[str, str]) -> None:
        if many > 0:
            points.append((name, curve, at, one.value, one.error, many, *units))

    for k, number in enumerate(pairs):
        units = scale.unit(0, 1), scale.unit(2, 0)
        many = float((weights.drawn @ number).mean())
        add("msd", (k + 1) * time, ratio(weights, square[k], number), many, units)
        if fit is not None:
            mean = float(fit.displacement(np.array(float(k + 1))))
            add("msd_fit", (k + 1) * time, Estimate.unknown(mean), many, units)
    for k, number in enumerate(products):
        many = float((weights.drawn @ number).mean())
        one = ratio(weights, product[k] / time**2, number)
        add("velocity_autocorrelation", k * time, one, many, (scale.unit(0, 1), scale.unit(2, -2)))
    begin = steps_of(movie.owner)
    begin = begin[movie.frame[begin + 1] - movie.frame[begin] == movie.lag]
    begin = begin[np.isin(movie.owner[begin], np.flatnonzero(weights.drawn.sum(axis=0)))]
    length = np.linalg.norm(movie.position[begin + 1] - movie.position[begin], axis=1)
    kinds = ("step", length, scale.unit(1, 0)), ("speed", length / time, scale.unit(1, -1))
    for kind, values, unit in kinds:
        for at, one, many in zip(*distribution(weights, values, movie.owner[begin]), strict=True):
            add(f"{kind}_distribution", float(at), one, float(many), (unit, f"1/({unit})"))
    return points


def _table_of_curves(points: list[_Point]) -> pa.Table:
    import pyarrow as pa

    names = ("group", "curve", "x", "value", "error", "count", "x_unit", "value_unit")
    kinds = [pa.string()] * 2 + [pa.float64()] * 4 + [pa.string()] * 2
    columns = zip(list(zip(*points, strict=True)) or [()] * len(names), kinds, strict=True)
    return pa.table([pa.array(column, kind, from_pandas=True) for column, kind in columns], names)


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
