"""Put all layers on one grid of voxels, and limit the frames that are shown."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from outbid.errors import SettingsError
from outbid.formats.images.frames import Images
from outbid.particles.calibration import Calibration
from outbid.particles.detections import Detections
from outbid.particles.tracks import Tracks
from outbid.scoring.gate import Gate, gate_for

from .from_layers import moved
from .judged import judge_links
from .layers import Layer, error_layers, points_layer, tracks_layer

_LOG = logging.getLogger("outbid")
_PLAIN_COLOURS = {"true": "green", "false": "red", "missed": "blue"}
LAST_FRAME = 2**31
"""A frame number after every frame, to show the last frames."""
MOST_VERTICES = 1_000_000
"""Rows of tracks in a window; napari needs 3 s to add 100,000 and 12 s to add a million."""


@dataclass(frozen=True)
class Grid:
    """The voxels that all layers of a window share; napari mixes up layers whose scale or unit differ.

    Parameters
    ----------
    spacing : (float, float, float)
        Size of a voxel along z, y, x, in `unit`.
    unit : str
    origin : (float, float, float)
        Place of the first voxel along z, y, x, in `unit`.
    """

    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    unit: str = "pixel"
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def calibration(self, interval: float | None = None) -> Calibration:
        """What numbers of voxels, and of frames so far apart, mean."""
        return Calibration(self.unit, self.spacing, interval, self.origin)


@dataclass(frozen=True, eq=False)
class View:
    """A movie and layers that lie on its grid.

    Parameters
    ----------
    grid : Grid
    layers : tuple of Layer
        In the order in which they are drawn.
    hidden : frozenset of str
        Names of layers that are there but not shown at first.
    cut : str
        Says which frames are shown if all would be too many for the screen; else empty.
    gate : Gate or None
        By which links were judged, if they were.
    """

    grid: Grid
    layers: tuple[Layer, ...]
    hidden: frozenset[str] = frozenset()
    cut: str = ""
    gate: Gate | None = None

    @property
    def legend(self) -> str:
        """Legend of the colours of the shown tracks, as one line of text."""
        shown = [layer for layer in self.layers if layer.kind == "tracks" and layer.name not in self.hidden]
        if any(layer.colour for layer in shown):
            return "links: " + ", ".join(f"{colour} {kind}" for kind, colour in _PLAIN_COLOURS.items())
        by = {layer.color_by for layer in shown}
        if "confidence" in by:
            return "links: blue certain, red uncertain"
        return f"tracks coloured by {by.pop().replace('_', ' ')}" if len(by) == 1 else ""


def scene(
    grid: Grid,
    points: Mapping[str, Detections],
    tracks: Mapping[str, Tracks],
    truth: Tracks | None = None,
    *,
    gate: float | None = None,
    frames: tuple[int, int] | None = None,
    around: float = 0,
    most: int = MOST_VERTICES,
) -> View:
    """Put detections, tracks and truth together.

    Parameters
    ----------
    grid : Grid
    points : mapping of str to Detections
        By name; positions in voxels of the grid, as `on_grid` gives them.
    tracks : mapping of str to Tracks
        Likewise.
    truth : Tracks, optional
        Likewise. The links of the first of `tracks` are judged by it, and shown by what they are.
    gate : float, optional
        Detections this far apart or farther are never the same, in the unit of the grid. Default: half of the
        usual distance between neighbours in the truth.
    frames : (int, int), optional
        First and last frame to show of points and tracks. Default: all, or as many around one as have at
        most `most` vertices of tracks.
    around : float
        Number of that frame.
    most : int

    Raises
    ------
    SettingsError
        If the first frame is after the last one, or the gate is not above 0.

    Examples
    --------
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]])
    >>> shown = scene(Grid((5, 1, 1)), {"spots": seen}, {"tracks": Tracks(seen, np.array([[0, 1]]))})
    >>> [(layer.name, layer.scale) for layer in shown.layers]
    [('spots', (1, 5, 1, 1)), ('tracks', (1, 5, 1, 1))]
    """
    if frames is not None and frames[0] > frames[1]:
        raise SettingsError(f"The first frame, {frames[0]}, is after the last, {frames[1]}. Exchange them.")
    layers = [points_layer(of, calibration=grid.calibration(), name=name) for name, of in points.items()]
    shown = [*tracks.items(), *([] if truth is None else [("Truth", truth)])]
    layers += [tracks_layer(of, calibration=grid.calibration(), name=name) for name, of in shown]
    hidden, reach = set[str](), None
    if truth is not None and tracks:
        hidden = {"Truth", *points, *tracks}
        found, world = next(iter(tracks.values())), moved(truth, grid.spacing)
        reach = gate_for(gate, world)
        judged = judge_links(moved(found, grid.spacing), world, reach.distance)
        layers += error_layers(replace(judged, tracks=found, truth=truth), calibration=grid.calibration())
    layers = [_without_lone(layer) if layer.kind == "tracks" else layer for layer in layers]
    fitting = frames or frames_that_fit(layers, around, most=most)
    if fitting is None:
        return View(grid, tuple(layers), frozenset(hidden), gate=reach)
    vertices = sum(len(layer.data) for layer in layers if layer.kind == "tracks")
    cut = (
        f"Of points and tracks, frames {fitting[0]} to {fitting[1]} are shown: with {vertices:,} vertices of "
        "tracks napari would be slow. Others are shown with --frames FIRST LAST."
    )
    layers = [in_frames(layer, *fitting) for layer in layers]
    return View(grid, tuple(layers), frozenset(hidden), "" if frames else cut, reach)


# ---------------------------------------------------------------- one grid


def grid_of(movie: Images | None, seen: Sequence[Detections]) -> Grid:
    """The grid of the movie; if the movie states no unit, the unit of the first detections with one.

    Examples
    --------
    >>> grid_of(None, [Detections.from_table([0], [[0, 0, 0]], unit="micrometer")])
    Grid(spacing=(1.0, 1.0, 1.0), unit='micrometer', origin=(0.0, 0.0, 0.0))
    """
    stated = [movie.unit] if movie is not None else []
    unit = next((unit for unit in [*stated, *(of.unit for of in seen)] if unit != "pixel"), "pixel")
    if movie is None:
        return Grid(unit=unit)
    if movie.unit != unit and movie.spacing == (1, 1, 1):
        _LOG.warning(
            "The movie states no voxel size, and positions are in %ss. Give --spacing if they do not fit.",
            unit,
        )
    return Grid(movie.spacing, unit, movie.origin)


def on_grid(seen: Detections, grid: Grid, *, in_voxels: bool | None = None) -> Detections:
    """Convert detections to positions in voxels of the image grid, with the unit of the grid.

    Parameters
    ----------
    seen : Detections
    grid : Grid
    in_voxels : bool, optional
        Whether the positions are in voxels. Default: they are if their unit is the pixel and that of the
        grid is not; else they are in their unit, as from `outbid detect`.

    Raises
    ------
    SettingsError
        If the units cannot be converted into each other.

    Examples
    --------
    >>> seen = Detections.from_table([0], [[2000, 300, 300]], unit="nanometer")
    >>> on_grid(seen, Grid((2, 0.5, 0.5), "micrometer")).position.round(6).tolist()
    [[1.0, 0.6, 0.6]]
    """
    own = seen.calibration
    if in_voxels or (in_voxels is None and seen.unit == "pixel" != grid.unit):
        return replace(seen, calibration=grid.calibration(own.interval))
    if in_voxels is None and own.factor(grid.unit) is None:
        raise SettingsError(
            f"Positions in {seen.unit!r} do not fit voxels in {grid.unit!r}. State their unit: "
            "--positions voxels or units."
        )
    if own.factor(grid.unit) is None:
        seen = replace(seen, calibration=replace(own, unit=grid.unit))
    return seen.on_grid(grid.calibration())


def share_outside(seen: Detections, movie: Images) -> float:
    """Share of the detections, in voxels, that lie more than a voxel outside the movie.

    Examples
    --------
    >>> from outbid.formats.images.opening import open_images
    >>> movie = open_images(np.zeros((2, 8, 8)), axes="TYX")
    >>> share_outside(Detections.from_table([0, 0, 2], [[0, 3, 3], [0, 9, 3], [0, 3, 3]]), movie)
    0.6666666666666666
    """
    beyond = (seen.position < -1) | (seen.position > np.array(movie.shape))
    outside = beyond.any(axis=1) | (seen.frame >= movie.frame_count) | (seen.frame < 0)
    return float(outside.mean()) if len(seen) else 0.0


# ---------------------------------------------------------------- what a screen takes


def in_frames(layer: Layer, first: int, last: int) -> Layer:
    """The part of a layer from the first to the last frame; its tracks are numbered anew.

    Examples
    --------
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> in_frames(tracks_layer(Tracks(seen, np.array([[0, 1], [1, 2]]))), 1, 5).data[:, 1].tolist()
    [1.0, 2.0]
    """
    time = _time(layer)
    return _rows(layer, (time >= first) & (time <= last))


def refuse_frame(frame: int | None, layers: Sequence[Layer], movie: Images | None = None) -> None:
    """Raise an error before a window opens if it would be empty or lack the requested frame.

    Raises
    ------
    SettingsError
        With the frames that there are.

    Examples
    --------
    >>> seen = Detections.from_table([5, 7], np.zeros((2, 3)))
    >>> refuse_frame(8, [points_layer(seen)])
    Traceback (most recent call last):
    outbid.errors.SettingsError: There is no frame 8; there are frames 5 to 7.
    """
    times = [_time(layer) for layer in layers if len(layer.data)]
    ends = [end for time in times for end in (int(time.min()), int(time.max()))]
    if movie is not None:
        ends += [0, movie.frame_count - 1]
    if not ends:
        raise SettingsError("These frames contain nothing to show. Choose others: --frames FIRST LAST.")
    if frame is not None and not min(ends) <= frame <= max(ends):
        raise SettingsError(f"There is no frame {frame}; there are frames {min(ends)} to {max(ends)}.")


def frames_that_fit(
    layers: Sequence[Layer], around: float = 0.0, *, most: int = MOST_VERTICES
) -> tuple[int, int] | None:
    """First and last of the frames around one that have at most so many vertices of tracks; None: all fit.

    Parameters
    ----------
    layers : sequence of Layer
    around : float
        Number of the frame in the middle; it is among them however many vertices it has.
    most : int

    Examples
    --------
    >>> seen = Detections.from_table(np.arange(9), np.zeros((9, 3)))
    >>> layer = tracks_layer(Tracks.from_track_ids(seen, np.zeros(9)))
    >>> frames_that_fit([layer], 5, most=3), frames_that_fit([layer], 5, most=9)
    ((4, 6), None)
    """
    time = np.concatenate([np.empty(0), *(layer.data[:, 1] for layer in layers if layer.kind == "tracks")])
    if len(time) <= most:
        return None
    frame, count = np.unique(time, return_counts=True)
    nearest = np.argsort(np.abs(frame - around), kind="stable")
    fitting = max(int(np.searchsorted(np.cumsum(count[nearest]), most, side="right")), 1)
    shown = frame[nearest[:fitting]]
    return int(shown.min()), int(shown.max())


def point_size(layer: Layer) -> float:
    """Diameter at which points do not cover each other, in voxels along x: half of the usual distance.

    Examples
    --------
    >>> seen = Detections.from_table([0, 0, 0], [[0, 0, 0], [0, 0, 16], [0, 0, 32]])
    >>> point_size(points_layer(seen))
    8.0
    """
    if len(layer.data) == 0:
        return 10.0
    frame, count = np.unique(layer.data[:, 0], return_counts=True)
    position = layer.data[layer.data[:, 0] == frame[np.argmax(count)], 1:] * np.array(layer.scale[1:])
    nearest = KDTree(position).query(position, k=2)[0][:, 1] / layer.scale[-1]
    usual = float(np.median(nearest))
    return float(np.clip(usual / 2, 3.0, 10.0)) if np.isfinite(usual) else 10.0


def contrast_of(frame: NDArray) -> tuple[float, float]:
    """Grey values shown as black and white: the background, and a value that few voxels exceed.

    Examples
    --------
    >>> contrast_of(np.array([[[0, 0, 9, 0]]]))
    (0.0, 9.0)
    """
    values = frame[np.isfinite(frame)] if frame.dtype.kind == "f" else frame.ravel()
    if values.size == 0:
        return 0.0, 1.0
    thinned = values[:: max(values.size // 2_000_000, 1)]
    low, high = np.quantile(thinned, [0.01, 0.999], method="nearest")
    least, most = float(values.min()), float(values.max())
    if low == high:
        low, high = least, most
    return (float(low), float(high)) if low < high else (float(low), float(low) + 1.0)


def _time(layer: Layer) -> NDArray[np.float64]:
    """(n,): the frame number of each row."""
    return layer.data[:, 1 if layer.kind == "tracks" else 0]


def _rows(layer: Layer, kept: NDArray[np.bool_]) -> Layer:
    """Some rows of a layer."""
    part = layer.take(kept)
    if layer.kind != "tracks":
        return part
    number, part.data[:, 0] = np.unique(part.data[:, 0], return_inverse=True)
    new = {int(old): k for k, old in enumerate(number)}
    held = [(child, [new[p] for p in of if p in new]) for child, of in layer.graph.items()]
    graph = {new[child]: of for child, of in held if child in new and of}
    return replace(part, graph=graph)


def _without_lone(layer: Layer) -> Layer:
    """The layer without tracks of a single detection, which napari does not draw."""
    number = layer.data[:, 0].astype(np.int64)
    count = np.bincount(number)
    joined = [*layer.graph, *(parent for parents in layer.graph.values() for parent in parents)]
    count[joined] = 2
    return _rows(layer, count[number] > 1)
