"""Plots of a report, as matplotlib figures; drawn without a display and reproducible to the byte."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from outbid.particles.calibration import Calibration
from outbid.particles.tracks import Tracks

from .crops import Crops
from .curves import Displacement, WorstLinks
from .from_layers import moved
from .judged import JudgedLinks

_STYLE: dict[str, Any] = {
    "svg.hashsalt": "outbid", "svg.fonttype": "path", "font.size": 9.0, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3, "grid.linewidth": 0.6,
    "savefig.transparent": True,  # the page may be light or dark
}  # fmt: skip
COLOURS = ("#0072b2", "#d55e00", "#00875f", "#c2185b", "#8a6d00", "#56b4e9", "#7a52a1", "#5f5f5f")
"""Of curves, which take them in turn."""
_BLUE, _ORANGE, _GREEN, _RED, _GREY = "#0072b2", "#d55e00", "#00875f", "#c2185b", "#8a8a8a"


def style() -> AbstractContextManager[None]:
    """Draw with the settings of this module, not with the user's matplotlib settings."""
    return matplotlib.style.context(["default", _STYLE], after_reset=True)


_UNDATED: Mapping[str, dict[str, None]] = {
    "png": {"Software": None}, "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}  # fmt: skip


def saved(figure: Figure, kind: str = "png", dpi: int = 110) -> bytes:
    """The figure as a file, without date and version: the same input gives the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=dpi, metadata=_UNDATED[kind])
    return buffer.getvalue()


def image(figure: Figure) -> str:
    """The figure as a data URI."""
    return f"data:image/svg+xml;base64,{base64.b64encode(saved(figure, 'svg', 130)).decode('ascii')}"


def accuracy(
    frame: NDArray[np.float64], precision: NDArray[np.float64], recall: NDArray[np.float64]
) -> Figure:
    """Precision and recall of the links over time."""
    figure, axes = _over_frames(frame, (precision, "precision"), (recall, "recall"), width=1.4)
    low = np.nanmin([*precision, *recall, 1.0])
    axes.set(ylabel="share of right links", ylim=(max(0.0, low - 0.05 * (1.05 - low)), 1.005))
    axes.legend(frameon=False, loc="best")
    return figure


def counts(frame: NDArray[np.float64], curves: Mapping[str, NDArray[np.float64]]) -> Figure:
    """Detections per frame over time; or two kinds of ends of tracks."""
    figure, axes = _over_frames(frame, *((count, name) for name, count in curves.items()))
    top = 1.15 * max(1.0, *(count.max(initial=0) for count in curves.values()))
    axes.set(ylabel="tracks" if len(curves) > 1 else next(iter(curves)), ylim=(0, top))
    if len(curves) > 1:
        axes.legend(frameon=False, loc="best", ncols=2)
    return figure


def speed_histogram(lengths: NDArray[np.float64], of: Calibration) -> Figure:
    """Histogram of speeds, from lengths of steps from frame to frame, with the median."""
    figure, axes = _figure()
    _histogram(axes, lengths / (of.interval or 1.0), min(60, max(10, int(np.sqrt(len(lengths))))), ".3g")
    axes.set(xlabel=f"speed ({_of_speed(of)})", ylabel="links", xlim=(0, None))
    return figure


def lengths_of_tracks(lengths: NDArray[np.int64]) -> Figure:
    """Histogram of track lengths, with the median."""
    figure, axes = _figure()
    most = int(lengths.max(initial=1))
    width = -(-most // 60)
    _histogram(axes, lengths, (np.arange(1, most + 2 * width, width) - 0.5).tolist(), "g")
    tracks = np.bincount(lengths)
    if len(lengths) and tracks.max() > 20 * np.median(tracks[tracks > 0]):
        axes.set_yscale("log")
    axes.set(xlabel="detections in a track", ylabel="tracks")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def displacement(curve: Displacement, of: Calibration) -> Figure:
    """Mean square displacement over lag, both logarithmic, with its fit."""
    figure, axes = _figure()
    positive = curve.mean_square > 0
    lag, mean = curve.lag[positive] * (of.interval or 1), curve.mean_square[positive]
    if len(lag):
        axes.loglog(lag, mean, color=_BLUE, lw=0, marker="o", ms=3)
        if curve.fit is not None:
            label = f"fit: {curve.motion} motion" if curve.motion != "diffusion" else "fit: diffusion"
            label += f"; exponent {curve.exponent:.2f}"
            axes.plot(lag, curve.fit[positive], color=_ORANGE, lw=1.4, label=label)
            axes.legend(frameon=False)
    axes.set(xlabel=f"lag ({of.clock})", ylabel=f"mean square displacement\n({_shown(of.symbol)}²)")
    return figure


def speeds(curve: NDArray[np.float64], of: Calibration) -> Figure:
    """Median speed over time, with its quartiles, from steps from frame to frame."""
    frame = curve[0]
    low, median, high = curve[1:] / (of.interval or 1.0)
    figure, axes = _over_frames(frame, (median, ""), width=1.3)
    axes.fill_between(frame, low, high, color=_BLUE, alpha=0.25, lw=0)
    axes.set(ylabel=f"speed ({_of_speed(of)})", ylim=(0, None))
    return figure


def gallery(
    tracks: Tracks,
    worst: WorstLinks,
    of: Calibration,
    judged: JudgedLinks | None,
    crops: Crops | None = None,
) -> Figure:
    """Draw each link in a panel of its own, with the detections, links and image around it."""
    columns = 4
    rows = -(-len(worst.row) // columns)
    figure = Figure(figsize=(9.6, 2.65 * rows + 0.3), layout="constrained")
    panels: Sequence[Axes] = np.ravel(figure.subplots(rows, columns, squeeze=False)).tolist()
    tracks = moved(tracks, of.spacing)
    truth = None if judged is None else moved(judged.truth, of.spacing)
    half = _half_width(tracks, worst.row)
    for axes, link, value in zip(panels, worst.row.tolist(), worst.value.tolist(), strict=False):
        _panel(axes, tracks, link, half, truth)
        source, target = tracks.detections.frame[tracks.links[link]].tolist()
        if crops is not None:
            middle = tracks.detections.position[tracks.links[link]].mean(axis=0)
            crop = crops.around((source, target), middle, half)
            if crop is not None:
                axes.imshow(crop[0], extent=crop[1], interpolation="nearest", zorder=-1)
                axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
        verdict = "" if judged is None else ("  right" if judged.right[link] else "  wrong")
        colour = "black" if judged is None else (_GREEN if judged.right[link] else _RED)
        track = tracks.track_id[tracks.links[link, 1]]
        title = f"track {track}, frame {source} to {target}\n{worst.measure} {value:.3g}{verdict}"
        axes.set_title(title, fontsize=8, color=colour)
    for axes in panels[len(worst.row) :]:
        axes.set_axis_off()
    return figure


def _panel(axes: Axes, tracks: Tracks, link: int, half: float, truth: Tracks | None) -> None:
    """Detections of both frames, the link, the other links between them, and the true ones."""
    seen, position = tracks.detections, tracks.detections.position
    source, target = tracks.links[link]
    middle = (position[source] + position[target])[1:] / 2
    for row, marker, colour in ((source, "o", _BLUE), (target, "x", _ORANGE)):
        near = position[seen.rows_of(int(seen.frame[row]))]
        near = near[(np.abs(near[:, 1:] - middle) <= half).all(axis=1)]
        axes.plot(near[:, 2], near[:, 1], marker, ms=4.5, mfc="none", mec=colour, mew=1)
    _draw_links(axes, tracks, seen.frame[source], middle, half, (_GREY, "-", 1.0))
    if truth is not None:
        _draw_links(axes, truth, seen.frame[source], middle, half, (_GREEN, ":", 2.2))
    axes.plot(position[[source, target], 2], position[[source, target], 1], color="black", lw=1.6, zorder=1)
    axes.set(xlim=(middle[1] - half, middle[1] + half), ylim=(middle[0] + half, middle[0] - half))
    axes.set(aspect="equal")
    axes.tick_params(labelsize=6)
    axes.grid(visible=False)


def _draw_links(
    axes: Axes, tracks: Tracks, frame: int, middle: NDArray, half: float, look: tuple[str, str, float]
) -> None:
    """The links that start in a frame near a point."""
    position, rows = tracks.detections.position, tracks.detections.rows_of(frame)
    begin, end = np.searchsorted(tracks.links[:, 0], [rows.start, rows.stop])
    links = tracks.links[begin:end]
    near = (np.abs(position[links[:, 0], 1:] - middle) <= 2 * half).all(axis=1)
    lines = list(position[links[near]][..., [2, 1]])
    colour, dashes, width = look
    axes.add_collection(LineCollection(lines, colors=colour, linestyles=dashes, linewidths=width, zorder=0))


def _half_width(tracks: Tracks, rows: NDArray[np.int64]) -> float:
    """Half the width of all panels: large enough for every link and its nearest rivals."""
    position = tracks.detections.position
    way = np.abs(position[tracks.links[rows, 1]] - position[tracks.links[rows, 0]])[:, 1:].max(initial=0.0)
    return float(max(1.5 * way, 1e-3 * np.ptp(position[:, 1:], axis=0).max(initial=0.0), 1e-9))


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(4.7, 3.0), layout="constrained")
    return figure, figure.subplots()


def _histogram(axes: Axes, values: NDArray, bins: int | list[float], form: str) -> None:
    """Bars, and the median as a line, with its number in this format."""
    if len(values):
        axes.hist(values, bins=bins, color=_BLUE)
        median = float(np.median(values))
        axes.axvline(median, color=_ORANGE, lw=1.4, label=f"median {median:{form}}")
        axes.legend(frameon=False)


def _over_frames(
    frame: NDArray[np.float64], *curves: tuple[NDArray[np.float64], str], width: float = 1.2
) -> tuple[Figure, Axes]:
    """One or two curves with their labels over time; a point each where there is a single frame."""
    figure, axes = _figure()
    marker = "o" if len(frame) == 1 else ""
    for (values, label), (colour, dashes) in zip(curves, ((_BLUE, "-"), (_ORANGE, "--")), strict=False):
        axes.plot(frame, values, color=colour, ls=dashes, lw=width, marker=marker, label=label)
    axes.set(xlabel="frame")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure, axes


def _of_speed(of: Calibration) -> str:
    """Unit of a speed."""
    return f"{_shown(of.symbol)}{' per frame' if of.interval is None else '/s'}"


def _shown(unit: str) -> str:
    """Escape a unit for plots: fonts lack some characters, and a dollar sign begins a formula."""
    plain = unit.removeprefix("µ").isascii() and unit.isprintable() and len(unit) <= 20
    return unit.replace("\\", "").replace("$", "\\$") if plain else "unit of the positions"
