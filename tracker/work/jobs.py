"""Jobs: process one movie from file to file; plain data that can be sent to other processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from numpy.typing import NDArray

from .. import formats
from ..compute.arrays import free_memory
from ..compute.threads import begun
from ..compute.timing import lap
from ..detection.frames import detect_frames, learn_from, null_of
from ..detection.suited import remarks_on
from ..edit.crop import Crop, CroppedMovie, track_part
from ..edit.filter import of_length
from ..errors import InputError, OutbidError, ResourceError
from ..formats.images.frames import Images
from ..formats.images.labels import detect_labels
from ..formats.images.opening import open_images, origin_of
from ..formats.images.stacks import WHOLE, Box
from ..formats.tables.columns import AS_NAMED
from ..gated.batches import RECORDED
from ..particles.calibration import recorded_interval
from ..particles.detections import Detections, in_places
from ..particles.remarks import at_first_sight, doubled, without_links
from ..settings.detection import DetectionSettings
from ..tracking import TrackingRun, TrackingSettings

if TYPE_CHECKING:  # its kernels are loaded when they are needed
    from ..detection.model import SpotModel

_WHOLE_FRAMES = 50_000_000
"""Voxels of a frame up to which it is looked at as a whole, whatever region counts: so a region has exactly
the spots that the whole frame has there."""
_VOXEL_BYTES = 16
"""Guard: bytes that a voxel of a frame takes while it is searched, as measured at 19 million voxels."""
_SHARE = 0.8
"""Guard: share of the free memory that a frame may take."""
_WRITTEN = (suffix for suffix in formats.WRITTEN if suffix.count(".") > 1)
_ENDINGS = (".ome.tif", ".ome.tiff", ".ome.zarr", ".zarr.zip", *_WRITTEN)
"""Suffixes of two parts, both of which are removed to name an output."""
Progress = Callable[[int, int], None] | None
_LOG = logging.getLogger("outbid")


class Job(Protocol):
    """A job that `many.run_many` runs on each movie."""

    command: ClassVar[str]

    def request(self) -> dict[str, object]:
        """The settings that determine the output, together with the input, as plain values."""

    def origin(self, source: str) -> dict[str, Any]:
        """The entry of the run record about the input."""

    def run(
        self, source: str, output: Path, record: Mapping[str, object], *, overwrite: bool
    ) -> Mapping[str, object]:
        """Make the output, and return a summary; `record` is extended and stored with the output."""

    def kept(self, output: Path) -> Mapping[str, object]:
        """Version, input and request recorded in an existing output; an InputError if it has no record."""
        return formats.read_record(output)


@dataclass(frozen=True)
class Opening:
    """Options to open images, as `open_images` takes them."""

    axes: str | None = None
    channel: int = 0
    scene: int | None = None
    level: int = 0
    spacing: tuple[float, float, float] | None = None

    def open(self, source: str, *, partial: bool = False) -> Images:
        """Open a file or URL; `partial`: also one that lacks frames that it declares."""
        return open_images(source, **asdict(self), partial=partial)


def _refuse_large(shape: tuple[int, int, int], box: Box) -> None:
    """Refuse frames that do not fit the memory, and say how they are searched in parts."""
    sizes = [len(range(*side.indices(size))) for side, size in zip(box, shape, strict=True)]
    need, free = prod(sizes) * _VOXEL_BYTES, free_memory()
    if need > _SHARE * free:
        axis = sizes.index(max(sizes))
        part = max(int(sizes[axis] * _SHARE * free / need / 2), 1)
        region = ",".join(f"0:{part}" if k == axis else ":" for k in range(3))
        frame = f"A frame of {' x '.join(map(str, sizes))} voxels takes about {need / 1e9:.1f} GB"
        raise ResourceError(
            f"{frame}, more than the {free / 1e9:.1f} GB of memory that are free. Search it in parts, one "
            f"after the other, and join their tables: outbid detect MOVIE -o part1.csv --region {region}"
        )


@dataclass(frozen=True)
class DetectJob(Job):
    """Detect spots in a movie, or centroids of labels.

    Parameters
    ----------
    settings : DetectionSettings
        Their `spacing` is replaced by that of the movie.
    labels : bool
        Whether the movie is of label images.
    intensity : str or None
        A movie in whose channels the objects of label images are measured.
    opening : Opening
    crop : Crop
        Its region is in voxels.
    workers : int
        Threads.
    model : SpotModel or None
        Model learned from the movie, with its settings; None learns one.
    """

    command: ClassVar[str] = "detect"

    settings: DetectionSettings = field(default_factory=DetectionSettings)
    labels: bool = False
    opening: Opening = field(default_factory=Opening)
    crop: Crop = field(default_factory=Crop)
    workers: int = 1
    model: SpotModel | None = None
    intensity: str | None = None

    def request(self) -> dict[str, object]:
        used = asdict(self.settings)
        del used["spacing"], used["device"]  # those of the movie, and what decides no result
        return used | self._kind() | asdict(self.opening) | asdict(self.crop)

    def _kind(self) -> dict[str, object]:
        """What is detected, as records have it."""
        kind: dict[str, object] = {"labels": self.labels}
        return kind if self.intensity is None else kind | {"intensity": self.intensity}

    def origin(self, source: str) -> dict[str, Any]:
        """The entry of the run record, with the seconds between frames if the movie states them."""
        with suppress(OutbidError):  # detecting says what is wrong
            interval = self.opening.open(source).interval
            return origin_of(source) | ({"interval": interval} if interval else {})
        return origin_of(source)

    def learned(self, movie: Images) -> tuple[SpotModel | None, DetectionSettings]:
        """Learn the spot model and the settings from the whole movie, also if only a part is searched."""
        settings = replace(self.settings, spacing=movie.spacing)
        if self.labels:
            return None, settings
        box = self._cut(movie).box

        def read(numbers: Sequence[int]) -> Iterator[NDArray]:
            return movie.frames([there[number] for number in numbers], box)

        there = [number for number in range(movie.frame_count) if number not in movie.missing]
        return learn_from(read, len(there), settings, workers=self.workers)

    def _cut(self, movie: Images, radius: tuple[float, float] | None = None) -> CroppedMovie:
        """The part of the movie that is read."""
        cut = self.crop.bounds().of(movie, radius)
        whole = not self.labels and prod(movie.shape) <= _WHOLE_FRAMES
        cut = replace(cut, box=WHOLE) if whole else cut
        _refuse_large(movie.shape, cut.box)
        return cut

    def detect(self, movie: Images, progress: Progress = None) -> tuple[Detections, DetectionSettings]:
        """The detections of an open movie, and the settings with the values that were estimated.

        Raises
        ------
        OutbidError
            As `outbid.detect`, or if the part lies outside the movie.
        """
        model, settings = (self.model, self.settings) if self.model else self.learned(movie)
        radius = self.settings.radius
        sizes = None if radius is None else (settings.radius_z or radius, radius)
        cut = self._cut(movie, sizes)
        if self.labels:
            found = detect_labels(
                cut.frames(), spacing=movie.spacing, unit=movie.unit, count=len(cut.numbers),
                progress=progress, intensity=self._channels(cut),
            )  # fmt: skip
        else:
            found, settings = detect_frames(
                cut.frames() if model else [], settings, unit=movie.unit, workers=self.workers,
                count=len(cut.numbers), model=model, progress=progress,
            )  # fmt: skip
        return in_places(cut.placed(found), movie.calibration, movie.times), settings

    def _channels(self, cut: CroppedMovie) -> list[Iterator[NDArray]]:
        """The frames of each channel of the movie in which objects are measured."""
        count = 0 if self.intensity is None else open_images(self.intensity).channel_count
        channels = [open_images(self.intensity, channel=k) for k in range(count)]
        sizes = {(one.frame_count, *one.shape) for one in (cut.movie, *channels)}
        if len(sizes) > 1:
            raise InputError(
                f"{self.intensity} and the label images differ in frames, z, y or x: {sizes}. Give the movie "
                "from which they were made."
            )
        return [channel.frames(cut.there, cut.box) for channel in channels]

    def frame_count(self, movie: Images) -> int:
        """Number of frames of a movie that are processed."""
        return len(self.crop.bounds().of(movie).numbers)

    def record(
        self, origin: Mapping[str, Any], used: DetectionSettings, interval: float | None = None
    ) -> dict[str, object]:
        """The run record; `--config` of it repeats the run. `interval`: seconds between frames, if known."""
        opened = {name: value for name, value in asdict(self.opening).items() if name != "spacing"}
        if not opened["level"]:
            del opened["level"]
        resolved = asdict(used) | self._kind() | opened | _given(self.crop)
        clock = {} if interval is None else {"interval": interval}
        known = {"settings": resolved, "seed": None, "device": used.device}
        known |= {} if self.labels else {"null": null_of(used)}
        return run_record("detect", origin) | known | clock

    def run(
        self, source: str, output: Path, record: Mapping[str, object], *, overwrite: bool
    ) -> Mapping[str, object]:
        movie = self.open(source)
        for remark in self.remarks(movie):
            _LOG.warning("%s: %s", source, remark)
        found, _ = self.write(movie, source, output, record, overwrite=overwrite)
        return {"detections": len(found), "frames": self.frame_count(movie), "units": str(found.calibration)}

    def open(self, source: str) -> Images:
        """Open the movie, of which frames may be missing if some are chosen."""
        return self.opening.open(source, partial=self.crop.frames is not None)

    def remarks(self, movie: Images) -> tuple[str, ...]:
        """Sentences on what was guessed of an open movie, and on settings that hardly fit it."""
        return *movie.warnings, *remarks_on(movie, self.settings, labels=self.labels)

    def write(
        self,
        movie: Images,
        source: str,
        output: Path,
        record: Mapping[str, object] = MappingProxyType({}),
        *,
        overwrite: bool = False,
        progress: Progress = None,
    ) -> tuple[Detections, DetectionSettings]:
        """Write the detections of an open movie with their record; returns what `detect` does."""
        found, used = self.detect(movie, progress)
        whole = self.record(self.origin(source), used, movie.interval) | dict(record)
        formats.write_detections(output, found, record=whole, overwrite=overwrite)
        return found, used


@dataclass(frozen=True)
class TrackJob(Job):
    """Link the detections of a movie.

    Parameters
    ----------
    settings : TrackingSettings
    columns : mapping of str to str
        As for `outbid.read_detections`.
    crop : Crop
    workers : int or None
        Threads; None is one a core.
    min_length : int
        Tracks of fewer detections are left out once all are linked.
    """

    command: ClassVar[str] = "track"

    settings: TrackingSettings = field(default_factory=TrackingSettings)
    columns: Mapping[str, str] = field(default_factory=lambda: AS_NAMED)
    crop: Crop = field(default_factory=Crop)
    workers: int | None = 1
    min_length: int = 1

    def request(self) -> dict[str, object]:
        used = self.settings.as_dict()
        del used["device"]  # decides no result, and is known only when the movie is
        if self.settings.max_distance is not None:
            used["max_gap"] = self.settings.max_gap or 0
        return used | asdict(self.crop) | self._shortest() | {"columns": dict(self.columns)}

    def origin(self, source: str) -> dict[str, Any]:
        """The entry of the run record, with the seconds between frames if that of the detections has them."""
        entry: dict[str, Any] = {**formats.input_of(source, self.columns)}
        with suppress(InputError):
            interval = recorded_interval(formats.read_record(source))
            entry |= {} if interval is None else {"interval": interval}
        return entry

    def record(self, origin: Mapping[str, Any], used: TrackingSettings) -> dict[str, object]:
        """The run record; `--config` of it repeats the run."""
        settings = used.as_dict() | _given(self.crop) | self._shortest()
        return run_record("track", origin) | {"settings": settings, "seed": None, "device": used.device}

    def run(
        self, source: str, output: Path, record: Mapping[str, object], *, overwrite: bool
    ) -> Mapping[str, object]:
        run, _ = self.link(source, output, record, overwrite=overwrite)
        counts = {name: run.stats[name] for name in ("links", "tracks", "worst_gap")}
        return {**counts, "units": str(run.tracks.detections.calibration)}

    def link(
        self,
        source: str,
        output: Path,
        record: Mapping[str, object] = MappingProxyType({}),
        *,
        overwrite: bool = False,
        say: Callable[[str], None] | None = None,
        progress: Progress = None,
    ) -> tuple[TrackingRun, Mapping[str, object]]:
        """Link a file, and write the tracks with their record; returns the run and the record.

        `say` is given each warning on the movie; without it there are none.
        """
        used = self.settings
        hashed = begun(self.origin, source)
        detections = formats.read_detections(source, columns=self.columns)
        lap("read")
        _LOG.info("%d detections in %d frames, %s", len(detections), detections.frame_count, detections.unit)
        gate = used.max_distance, used.max_gap or 0, used.spacing
        if say is not None:
            twice = begun(doubled, detections)
            for warning in at_first_sight(detections, max_distance=gate[0], max_gap=gate[1], spacing=gate[2]):
                say(warning)
        run = track_part(detections, used, self.crop, workers=self.workers, progress=progress)
        run = self._without_short(run)
        _LOG.info("%s", run.settings)
        if say is not None:
            unlinked = without_links(detections, run.stats["links"], *gate)
            for warning in [*twice.result().messages(), *unlinked]:
                say(warning)
        learned = {} if run.learned is None else {"learned": run.learned.as_dict()}
        origin = hashed.result()
        lap("hash")
        whole = recorded(self.record(origin, run.settings), run.stats) | learned | dict(record)
        formats.write_tracks(output, run.tracks, record=whole, overwrite=overwrite)
        lap("write")
        return run, whole

    def _without_short(self, run: TrackingRun) -> TrackingRun:
        """A run without the tracks that are shorter than `min_length`."""
        tracks = of_length(run.tracks, self.min_length)
        if tracks is run.tracks:
            return run
        counts = {"links": len(tracks.links), "tracks": tracks.track_count}
        return replace(run, tracks=tracks, stats={**run.stats, **counts})

    def _shortest(self) -> dict[str, object]:
        """The setting, where it leaves anything out."""
        return {"min_length": self.min_length} if self.min_length > 1 else {}


def run_record(command: str, origin: Mapping[str, Any]) -> dict[str, object]:
    """The entries of every run record: command, version, and name and hash of the input."""
    return {"command": command, "version": metadata.version("outbid"), "input": dict(origin)}


def recorded(record: Mapping[str, object], stats: Mapping[str, object]) -> dict[str, object]:
    """The run record of tracks with the statistics that it has."""
    return dict(record) | {name: stats[name] for name in RECORDED if name in stats}


def stem_of(source: str) -> str:
    """The name of a file, folder or URL without its ending.

    Examples
    --------
    >>> stem_of("spots/a.ome.tif"), stem_of("s3://bucket/b.zarr/"), stem_of("c.1.csv")
    ('a', 'b', 'c.1')
    """
    name = source.rstrip("/").rsplit("/", 1)[-1] if "://" in source else Path(source).name
    ending = next((each for each in _ENDINGS if name.lower().endswith(each)), None)
    return name[: -len(ending)] if ending else Path(name).stem


def _given(crop: Crop) -> dict[str, object]:
    """The options of a crop that are set."""
    return {name: value for name, value in asdict(crop).items() if value is not None}
