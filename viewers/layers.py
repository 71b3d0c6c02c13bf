"""Tracks and their errors as layers of napari, in plain arrays; napari itself is not needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outbid.errors import InputError
from outbid.particles.calibration import METRES, Calibration, calibration_given
from outbid.particles.detections import Detections
from outbid.particles.tracks import LINK_MEASURES, Tracks

from .judged import JudgedLinks

AXES = ("t", "z", "y", "x")
COLOURS = {"true": "limegreen", "false": "red", "missed": "deepskyblue"}
"""Colour of each kind of link, as a CSS name."""
_DIFFERENCE_COLOURS = ["lightgrey", "orange", "deepskyblue"]
"""Of links in two results, in the first alone, in the second alone."""
RECORD = "outbid"
"""Key of the run record in a layer's metadata."""
ASKED = "asked"
"""Key in a run record of detection: the settings as they were asked for, not as they were estimated."""
CORRECTED = "corrected"
"""Key in a run record of tracks: the table of pins with which they were corrected."""
FILTERED = "outbid where"
"""Key in a layer's metadata: the conditions by which *Lineage* filters it, as `outbid filter` takes them."""
WHOLE = "outbid whole"
"""Key in a layer's metadata: what has all tracks, as `tracks`, where the layer draws a part of them."""
PLACES = "outbid places"
"""Key in a layer's metadata: (N, 3) places of its rows along z, y, x, as they were detected."""

OF_TRACKS = {"track_id", "track_length", "speed", "confidence", *LINK_MEASURES}
"""Features of a layer of tracks that are not features of its detections."""


@dataclass(frozen=True, eq=False)
class Layer:
    """A napari layer as plain arrays; `as_tuple` returns it as napari's readers and `Layer.create` need it.

    Parameters
    ----------
    kind : {"tracks", "points", "image"}
    name : str
    data : (N, 5) or (N, 4) float64 array
        Rows track_id, t, z, y, x of tracks, sorted by track, then time; t, z, y, x of points.
    features : mapping of str to (N,) array
        One value a row; those of links are finite.
    scale : (float, float, float, float)
        Of t, z, y, x; without z in 2D, where the rows have none.
    unit : str
        Of z, y, x after scaling.
    graph : mapping of int to list of int
        Of tracks: the tracks from which a track divided or merged.
    color_by : str
        Of tracks: the feature that colours them.
    colour : str
        The one colour of all rows, as CSS names it; empty if features colour them. napari stretches a
        colormap from the least to the greatest value, so tracks of one colour need a colormap object of
        its own, which is not made here: ``colormaps_dict={layer.color_by: Colormap([layer.colour] * 2)}``.
    origin : (float, float, float, float)
        Time and place of the numbers 0, along the axes of `scale`.
    """

    kind: str
    name: str
    data: NDArray[np.float64]
    features: Mapping[str, NDArray]
    scale: tuple[float, ...]
    unit: str
    graph: Mapping[int, list[int]] = field(default_factory=dict)
    color_by: str = ""
    colour: str = ""
    origin: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)

    def in_plane(self) -> Layer:
        """The layer of 2D data, without z: napari joins layers at their last axes, so all of them need it.

        Examples
        --------
        >>> points_layer(Detections.from_table([3], [[1, 2]])).in_plane().data.tolist()
        [[3.0, 1.0, 2.0]]
        """
        scale, origin = ((of[0], *of[-2:]) for of in (self.scale, self.origin))
        return replace(self, data=np.delete(self.data, -3, axis=1), scale=scale, origin=origin)

    def take(self, rows: NDArray) -> Layer:
        """Some rows, or all in another order; the graph stays."""
        features = {name: values[rows] for name, values in self.features.items()}
        return replace(self, data=self.data[rows], features=features)

    def as_tuple(self) -> tuple[NDArray[np.float64], dict[str, Any], str]:
        """Data, attributes and kind of the layer.

        napari accepts only units of its unit registry, and ignores the units of all layers if one layer
        has none. Any other unit is therefore written as pixel.
        """
        unit = self.unit if self.unit in METRES else "pixel"
        attributes: dict[str, Any] = {
            "name": self.name, "scale": self.scale, "translate": self.origin,
            "units": ("pixel", unit, unit, unit)[: len(self.scale)],
            "axis_labels": AXES if len(self.scale) == 4 else (AXES[0], *AXES[-2:]),
        }  # fmt: skip
        if self.kind != "image":
            attributes["features"] = dict(self.features)
        if self.kind == "tracks":
            graph = {child: list(parents) for child, parents in self.graph.items()}
            attributes |= {"graph": graph, "color_by": self.color_by}
        elif self.colour:
            attributes |= {"border_color": self.colour, "face_color": "transparent", "symbol": "ring"}
        return self.data, attributes, self.kind


def image_attributes(name: str, voxels: Calibration, *, flat: bool = False) -> dict[str, Any]:
    """Attributes of a layer with an image of these voxels."""
    grid = Layer("image", name, np.empty((0, 4)), {}, (1, *voxels.spacing), voxels.unit)
    attributes = (grid.in_plane() if flat else grid).as_tuple()[1]
    if any(voxels.origin):
        attributes["translate"] = (0.0, *voxels.origin[-2:]) if flat else (0.0, *voxels.origin)
    if voxels.interval is not None:
        attributes["metadata"] = {RECORD: {"calibration": voxels.as_dict()}}
    return attributes


def points_layer(
    detections: Detections,
    *,
    calibration: Calibration | None = None,
    name: str = "Detections",
    spacing: Sequence[float] | None = None,
) -> Layer:
    """Points layer of napari with all detections.

    Parameters
    ----------
    detections : Detections
    calibration : Calibration, optional
        What the positions mean; by default that of the detections.
    name : str
    spacing
        The former argument, for one release.

    Examples
    --------
    >>> points_layer(Detections.from_table([3], [[0, 1, 2]])).data.tolist()
    [[3.0, 0.0, 1.0, 2.0]]
    """
    data = np.column_stack([detections.frame, detections.position])
    of = calibration_given(calibration, detections.calibration, spacing)
    values = dict(detections.features)
    return Layer("points", name, data, values, (1, *of.spacing), of.unit, origin=(0, *of.origin))


def tracks_layer(
    tracks: Tracks,
    *,
    calibration: Calibration | None = None,
    name: str = "Tracks",
    spacing: Sequence[float] | None = None,
) -> Layer:
    """Tracks, with features to colour them by.

    Parameters
    ----------
    tracks : Tracks
    calibration : Calibration, optional
        What the positions mean; by default that of the detections.
    name : str
    spacing
        The former argument, for one release.

    Returns
    -------
    Layer
        Its tracks are numbered as in `tracks`. Features: speed (of the scaled positions, a frame),
        track_length (detections), link_cost, link_margin, link_probability where they are known, and those
        of the detections.
        What a link has stands with the detection that it reaches; the first detection of a track has the
        value of the link that leaves it. Coloured by confidence, from 0 to 1, the probability or else the
        margin as a share of the greatest; by speed where neither is known.

    Examples
    --------
    A detection divides:

    >>> seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 3], [0, 4, 0]])
    >>> layer = tracks_layer(Tracks(seen, np.array([[0, 1], [0, 2]])))
    >>> layer.data.tolist()
    [[0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0, 3.0], [2.0, 1.0, 0.0, 4.0, 0.0]]
    >>> layer.graph, layer.features["speed"].tolist()
    ({1: [0], 2: [0]}, [3.0, 3.0, 4.0])
    """
    of = calibration_given(calibration, tracks.detections.calibration, spacing)
    of_link = {"speed": link_speed(tracks, of)} | tracks.measures
    order = np.lexsort((tracks.detections.frame, tracks.track_id))
    features: dict[str, NDArray] = {
        measure: _of_detections(tracks, values)[order] for measure, values in of_link.items()
    }
    features["track_length"] = np.bincount(tracks.track_id)[tracks.track_id][order]
    if "link_probability" in features:
        features["confidence"] = features["link_probability"]
    elif "link_margin" in features:
        features["confidence"] = features["link_margin"] / (features["link_margin"].max(initial=0) or 1)
    own = tracks.detections.features.items()
    features |= {name: values[order] for name, values in own if name not in OF_TRACKS}
    data = np.column_stack([tracks.track_id, tracks.detections.frame, tracks.detections.position])[order]
    return Layer(
        "tracks", name, data, features, (1, *of.spacing), of.unit, _graph(tracks),
        "confidence" if "confidence" in features else "speed", origin=(0, *of.origin),
    )  # fmt: skip


def error_layers(
    judged: JudgedLinks,
    names: tuple[str, str] | None = None,
    *,
    calibration: Calibration | None = None,
    spacing: Sequence[float] | None = None,
) -> list[Layer]:
    """Right, wrong and missing links, each in a layer and a colour of their own, and a point for each error.

    Parameters
    ----------
    judged : JudgedLinks
        From `outbid.viewers.judged.judge_links`.
    names : (str, str), optional
        What the two results are called, where neither is the truth.
    calibration : Calibration, optional
        What the positions mean; by default that of the found detections.
    spacing
        The former argument, for one release.

    Returns
    -------
    list of Layer
        Tracks *True links*, *False links* (found, but not in the truth) and *Missed links* (in the truth,
        at its positions), without detections that no such link touches; points *Errors*, by time, where a
        false or missed link ends, with a feature kind. Divisions are judged like other links.
        With names: *Links in both*, *Only in …* of each result, and *Differences*.

    Examples
    --------
    >>> from .judged import judge_links
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> found, truth = Tracks(seen, np.array([[0, 1], [0, 2]])), Tracks(seen, np.array([[0, 1], [1, 2]]))
    >>> [(layer.name, len(layer.data)) for layer in error_layers(judge_links(found, truth))]
    [('True links', 2), ('False links', 2), ('Missed links', 2), ('Errors', 2)]
    >>> one, other = Tracks(seen, np.array([[0, 1]])), truth
    >>> [(layer.name, len(layer.data)) for layer in error_layers(judge_links(one, other), ("a", "b"))]
    [('Links in both', 2), ('Only in a', 0), ('Only in b', 2), ('Differences', 1)]
    """
    of = calibration_given(calibration, judged.tracks.detections.calibration, spacing)
    kinds, points = ["false", "missed"], "Errors"
    shown, colours = [f"{kind.title()} links" for kind in COLOURS], [*COLOURS.values()]
    if names is not None:
        kinds, points = [f"only in {name}" for name in names], "Differences"
        shown, colours = ["Links in both", *(f"Only in {name}" for name in names)], _DIFFERENCE_COLOURS
    groups = [
        (judged.tracks, judged.right), (judged.tracks, ~judged.right), (judged.truth, ~judged.found_again),
    ]  # fmt: skip
    links = [
        replace(
            _without_graph(tracks_layer(_only(*group), calibration=of, name=name)),
            color_by="track_length",
            colour=colour,
        )
        for group, name, colour in zip(groups, shown, colours, strict=True)
    ]
    return [*links, _ends(judged, kinds, points, of)]


def link_speed(tracks: Tracks, calibration: Calibration | None = None) -> NDArray[np.float64]:
    """(E,) float64: distance that each link spans over its number of frames, by its own or this calibration.

    Examples
    --------
    >>> seen = Detections.from_table([0, 2], [[0, 0, 0], [0, 0, 3]])
    >>> link_speed(Tracks(seen, np.array([[0, 1]])), Calibration(spacing=(1, 1, 2))).tolist()
    [3.0]
    """
    source, target = tracks.links.T
    of = calibration or tracks.detections.calibration
    position, frame = tracks.detections.position * of.spacing, tracks.detections.frame
    return np.linalg.norm(position[target] - position[source], axis=1) / (frame[target] - frame[source])


def _of_detections(tracks: Tracks, of_link: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) float64: values of links copied to detections; all are finite, as napari's colours require."""
    values = np.full(len(tracks.detections), np.nan)
    source, target = tracks.links.T
    values[source[::-1]] = of_link[::-1]  # of several that leave, the first is kept
    values[target] = of_link
    known = np.isfinite(values)
    values[~known] = values[known].min() if known.any() else 0.0
    return values


def _graph(tracks: Tracks) -> dict[int, list[int]]:
    """Parents of every track that begins at a division or merge."""
    parent, child = np.unique(tracks.track_id[tracks.links], axis=0).T
    between = parent != child
    graph: dict[int, list[int]] = {}
    for mother, daughter in zip(parent[between].tolist(), child[between].tolist(), strict=True):
        graph.setdefault(daughter, []).append(mother)
    return graph


def graph_links(number: NDArray[np.int64], graph: Mapping[int, Sequence[int]]) -> NDArray[np.int64]:
    """Rows of the last detection of each parent and of the first of its child; raises InputError."""
    pairs = [(parent, child) for child, parents in graph.items() for parent in np.atleast_1d(parents)]
    parent, child = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    if not np.isin(np.concatenate([parent, child]), number).all():
        raise InputError("The graph of the tracks names a track that has no rows. Remove it from the graph.")
    last = np.searchsorted(number, parent, side="right") - 1
    return np.column_stack([last, np.searchsorted(number, child)])


def _only(tracks: Tracks, chosen: NDArray[np.bool_]) -> Tracks:
    """The chosen links and the detections that they join."""
    links = tracks.links[chosen]
    return Tracks(tracks.detections, links).take(np.unique(links))


def _without_graph(layer: Layer) -> Layer:
    """The links of the graph as separate tracks: napari always draws the graph in white."""
    number = layer.data[:, 0].astype(np.int64)
    ends = graph_links(number, layer.graph).ravel()
    joins = layer.data[ends]
    joins[:, 0] = number.max(initial=0) + 1 + np.arange(len(ends)) // 2
    features = {name: np.concatenate([values, values[ends]]) for name, values in layer.features.items()}
    return replace(layer, data=np.concatenate([layer.data, joins]), features=features, graph={})


def _ends(judged: JudgedLinks, kinds: Sequence[str], name: str, of: Calibration) -> Layer:
    """Points at the ends of links that only one side has, by time, with their kind."""
    seen = judged.tracks.detections, judged.truth.detections
    ends = judged.tracks.links[~judged.right, 1], judged.truth.links[~judged.found_again, 1]
    kind = np.repeat(kinds, [len(end) for end in ends])
    frame = np.concatenate([one.frame[end] for one, end in zip(seen, ends, strict=True)])
    position = np.concatenate([one.position[end] for one, end in zip(seen, ends, strict=True)])
    order = np.argsort(frame, kind="stable")
    data = np.column_stack([frame, position])[order]
    values, size = {"kind": kind[order]}, (1, *of.spacing)
    return Layer("points", name, data, values, size, of.unit, colour="yellow", origin=(0, *of.origin))
