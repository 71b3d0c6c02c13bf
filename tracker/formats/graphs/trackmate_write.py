"""Write TrackMate XML with everything that TrackMate needs to open the file."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...particles.detections import Detections
from ...particles.tracks import Tracks
from ..contract import Record, with_links
from ..files.outputs import write_whole
from ..files.records import record_bytes
from ..tables.edges import families, is_text, refuse_unwritable

if TYPE_CHECKING:
    from ..images.frames import Images

RECORD_MARK = "Run record of Outbid:"
"""Text that precedes the record in the log."""

_VERSION = "7.14.0"  # version of TrackMate with this file layout
_BASIC = {
    "QUALITY": ("Quality", "QUALITY"), "POSITION_X": ("X", "POSITION"), "POSITION_Y": ("Y", "POSITION"),
    "POSITION_Z": ("Z", "POSITION"), "POSITION_T": ("T", "TIME"), "FRAME": ("Frame", "NONE"),
    "RADIUS": ("Radius", "LENGTH"), "VISIBILITY": ("Visibility", "NONE"),
}  # fmt: skip
_TAKEN = {"ID", "name", *_BASIC} - {"QUALITY", "RADIUS"}
CONTOUR = "contour"
"""Feature with the contour of a spot as TrackMate writes it: x and y of its points from its centre."""
_LOG = logging.getLogger("outbid")
_RADIUS = 2.5  # default radius, with which TrackMate draws a spot
_MEASURES = {
    "LINK_COST": ("Edge cost", "COST"), "LINK_MARGIN": ("Margin", "COST"),
    "LINK_PROBABILITY": ("Probability", "NONE"),
}  # fmt: skip


def key_of(name: str) -> str:
    """The attribute under which a feature called `name` is written; radius and quality are TrackMate's own.

    Examples
    --------
    >>> key_of("radius"), key_of("Mean (a.u.)"), key_of("2nd")
    ('RADIUS', 'Mean_a_u_', '_2nd')
    """
    if name in ("radius", "quality"):
        return name.upper()
    key = re.sub(r"[^A-Za-z0-9_]+", "_", name)
    plain = (key[:1].isalpha() or key[:1] == "_") and key not in _TAKEN
    return key if plain else f"_{key}"


@dataclass(frozen=True)
class _Image:
    """Metadata of the image to which the tracks belong; lengths are in the unit of the positions."""

    folder: str  # with the name, the path of the image; if empty, TrackMate creates an empty image
    name: str
    shape: tuple[int, int, int]  # voxels along z, y, x
    frames: int
    spacing: tuple[float, ...] = (1.0, 1.0, 1.0)  # size of a voxel
    interval: float = 1.0  # time between frames
    clock: str = "frame"  # unit of time


def write_with_image(
    path: Path, tracks: Tracks, image: Path, movie: Images, *, record: Record, overwrite: bool
) -> None:
    """Write tracks in a file that TrackMate opens together with their image.

    Positions are from the first voxel of the image, in its unit, because TrackMate expects them so.

    Raises SettingsError if the unit of the positions does not fit that of the image.
    """
    of_image = replace(movie.calibration, origin=(0.0, 0.0, 0.0))
    seen = replace(tracks.detections.on_grid(movie.calibration), calibration=of_image).placed()
    tracks = replace(tracks, detections=seen)
    interval = float(movie.interval or 1.0)
    size = tuple(float(length) for length in movie.spacing)
    file = image.resolve()
    shown = _Image(
        f"{file.parent}/", file.name, movie.shape, movie.frame_count, size, interval,
        "sec" if movie.interval else "frame",
    )  # fmt: skip
    write_tracks(path, tracks, record, overwrite, shown)


def write_tracks(
    path: Path, given: Detections | Tracks, record: Record, overwrite: bool, image: _Image | None = None
) -> None:
    """See `outbid.formats.write_tracks`."""
    tracks = with_links(given)
    seen = tracks.detections
    refuse_unwritable(seen)
    columns = _columns({name: of for name, of in seen.features.items() if not _is_of_spot(name, of)})
    texts = [name for name in columns.values() if is_text(seen.features[name])]
    if texts:
        _LOG.warning("%s: TrackMate's features are numbers: %s left out", path, ", ".join(texts))
    columns = {key: name for key, name in columns.items() if name not in texts}
    interval = seen.calibration.interval
    if image is None:
        image = _empty_image(seen)
        image = image if interval is None else replace(image, interval=interval, clock="sec")

    def pieces() -> Iterator[str]:
        yield f'<?xml version="1.0" encoding="UTF-8"?>\n<TrackMate version="{_VERSION}">\n'
        yield f"  <Log>Written by Outbid.{_record(record)}</Log>\n"
        yield f'  <Model spatialunits={quoteattr(_printable(seen.unit))} timeunits="{image.clock}">\n'
        yield from _declarations(columns, seen.features)
        yield from _spots(seen, columns, image.interval)
        yield from _tracks(tracks)
        yield "  </Model>\n"
        yield _settings(image)
        yield '  <GUIState state="ConfigureViews" />\n</TrackMate>\n'

    # Names of files need not be UTF-8.
    content = (piece.encode("utf-8", "backslashreplace") for piece in pieces())
    write_whole(path, lambda file: file.writelines(content), overwrite=overwrite)


def _record(record: Record) -> str:
    if record is None:
        return ""
    # In ASCII, since XML cannot contain control characters.
    return f"\n{RECORD_MARK}\n" + escape(json.dumps(json.loads(record_bytes(record)), sort_keys=True))


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _columns(features: Mapping[str, NDArray]) -> dict[str, str]:
    """Feature names by the XML attributes under which they are written."""
    columns: dict[str, str] = {}
    for name in features:
        key = key_of(name)
        if key in columns:
            raise InputError(f"A feature called {name!r} would hide another in TrackMate's XML. Rename it.")
        columns[key] = name
    return columns


def _declarations(columns: Mapping[str, str], features: Mapping[str, NDArray]) -> Iterator[str]:
    def declared(key: str, name: str, dimension: str, whole: bool) -> str:
        quoted = quoteattr(_printable(name))
        return (
            f'        <Feature feature="{key}" name={quoted} shortname={quoted} dimension="{dimension}" '
            f'isint="{str(whole).lower()}" />\n'
        )

    yield "    <FeatureDeclarations>\n      <SpotFeatures>\n"
    for key, (name, dimension) in _BASIC.items():
        # A feature declared without values is not read back as a measurement.
        if key not in ("QUALITY", "RADIUS"):
            yield declared(key, name, dimension, key in ("FRAME", "VISIBILITY"))
    for key, name in columns.items():
        dimension = _BASIC[key][1] if key in _BASIC else "NONE"
        yield declared(key, name, dimension, features[name].dtype.kind in "biu")
    yield "      </SpotFeatures>\n      <EdgeFeatures>\n"
    for key in ("SPOT_SOURCE_ID", "SPOT_TARGET_ID"):
        yield declared(key, f"{key[5:11].capitalize()} spot ID", "NONE", True)
    for key, (name, dimension) in _MEASURES.items():
        yield declared(key, name, dimension, False)
    yield "      </EdgeFeatures>\n      <TrackFeatures>\n"
    for key, name in (("TRACK_INDEX", "Track index"), ("TRACK_ID", "Track ID")):
        yield declared(key, name, "NONE", True)
    yield declared("NUMBER_SPOTS", "Number of spots in track", "NONE", True)
    yield "      </TrackFeatures>\n    </FeatureDeclarations>\n"


def _spots(seen: Detections, columns: Mapping[str, str], interval: float) -> Iterator[str]:
    yield f'    <AllSpots nspots="{len(seen)}">\n'
    basic = {"QUALITY": "-1.0", "RADIUS": str(_RADIUS)}
    constant = "".join(f' {key}="{value}"' for key, value in basic.items() if key not in columns)
    for frame in np.unique(seen.frame).tolist():
        rows = seen.rows_of(frame)
        yield f'      <SpotsInFrame frame="{frame}">\n'
        columns_here = [map(_text, seen.features[name][rows].tolist()) for name in columns.values()]
        keys = [f' {key}="' for key in columns]
        spots = zip(_spots_of(seen, rows, interval), seen.position[rows].tolist(), strict=True)
        for ((spot, name, time, contour), (z, y, x)), *values in zip(spots, *columns_here, strict=True):
            measured = "".join(f'{key}{value}"' for key, value in zip(keys, values, strict=True))
            end = (
                f' ROI_N_POINTS="{len(contour.split()) // 2}">{escape(contour)}</Spot>' if contour else " />"
            )
            yield (
                f'        <Spot ID="{spot}" name={name} POSITION_X="{x!r}" POSITION_Y="{y!r}" '
                f'POSITION_Z="{z!r}" POSITION_T="{time!r}" FRAME="{frame}" '
                f'VISIBILITY="1"{constant}{measured}{end}\n'
            )
        yield "      </SpotsInFrame>\n"
    yield "    </AllSpots>\n"


def _is_of_spot(name: str, values: NDArray) -> bool:
    """Whether a feature is no feature in TrackMate, but the name, time or contour of a spot."""
    number = values.dtype.kind in "iuf" and bool(np.isfinite(values).all())
    return (name in ("name", CONTOUR) and is_text(values)) or (name == "time" and number)


def _spots_of(seen: Detections, rows: slice, interval: float) -> Iterator[tuple[int, str, float, str]]:
    """Number, quoted name, time and contour of each spot of a frame."""
    count = rows.stop - rows.start
    spots = range(rows.start, rows.stop)
    of = {name: values for name, values in seen.features.items() if _is_of_spot(name, values)}
    given = of.get("name")
    names = [f"ID{spot}" for spot in spots] if given is None else [str(name) for name in given[rows]]
    times = of.get("time", seen.frame * interval)[rows].tolist()
    contours = of[CONTOUR][rows].tolist() if CONTOUR in of else [""] * count
    yield from zip(spots, (quoteattr(_printable(name)) for name in names), times, contours, strict=True)


def _text(value: float | int | bool) -> str:
    """Format a number so that Java can parse it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(int(value) if isinstance(value, bool) else value)


def _tracks(tracks: Tracks) -> Iterator[str]:
    """One track per connected component, as in TrackMate; isolated spots have no track."""
    family = families(tracks)
    order = np.argsort(family[tracks.links[:, 0]], kind="stable")
    of = family[tracks.links[order, 0]]
    measured = {name.upper(): values[order].tolist() for name, values in tracks.measures.items()}
    sizes = np.bincount(family, minlength=1)
    starts = np.concatenate([[0], np.nonzero(np.diff(of))[0] + 1, [len(of)]]) if len(of) else np.zeros(1, int)
    yield "    <AllTracks>\n"
    for index, (start, stop) in enumerate(zip(starts, starts[1:], strict=False)):
        yield (
            f'      <Track name="Track_{index}" TRACK_ID="{index}" TRACK_INDEX="{index}" '
            f'NUMBER_SPOTS="{sizes[of[start]]}">\n'
        )
        for link in range(start, stop):
            source, target = tracks.links[order[link]].tolist()
            more = "".join(f' {key}="{_text(values[link])}"' for key, values in measured.items())
            yield f'        <Edge SPOT_SOURCE_ID="{source}" SPOT_TARGET_ID="{target}"{more} />\n'
        yield "      </Track>\n"
    yield "    </AllTracks>\n    <FilteredTracks>\n"
    for index in range(len(starts) - 1):
        yield f'      <TrackID TRACK_ID="{index}" />\n'
    yield "    </FilteredTracks>\n"


def _empty_image(seen: Detections) -> _Image:
    """Settings of an empty image with the extent of the data, on which TrackMate shows the tracks."""
    far = np.maximum(seen.position.max(axis=0, initial=0), 0)
    depth, height, width = np.minimum(np.floor(far) + 1, 2**31 - 1).astype(np.int64).tolist()
    return _Image("", "", (depth, height, width), int(seen.frame[-1]) + 1 if len(seen) else 1)


def _settings(image: _Image) -> str:
    depth, height, width = image.shape
    z, y, x = image.spacing
    return f"""  <Settings>
    <ImageData filename={quoteattr(image.name)} folder={quoteattr(image.folder)} width="{width}" \
height="{height}" nslices="{depth}" nframes="{image.frames}" pixelwidth="{x!r}" pixelheight="{y!r}" \
voxeldepth="{z!r}" timeinterval="{image.interval!r}" />
    <BasicSettings xstart="0" xend="{width - 1}" ystart="0" yend="{height - 1}" \
zstart="0" zend="{depth - 1}" tstart="0" tend="{image.frames - 1}" />
    <DetectorSettings DETECTOR_NAME="MANUAL_DETECTOR" RADIUS="{_RADIUS}" />
    <InitialSpotFilter feature="QUALITY" value="0.0" isabove="true" />
    <SpotFilterCollection />
    <TrackerSettings TRACKER_NAME="MANUAL_TRACKER" />
    <TrackFilterCollection />
    <AnalyzerCollection>
      <SpotAnalyzers />
      <EdgeAnalyzers />
      <TrackAnalyzers />
    </AnalyzerCollection>
  </Settings>
"""
