"""Restrict a movie to a region, frames and a mask: images before detection, tracks after linking."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, SettingsError
from ..formats.images.frames import Images
from ..formats.images.opening import open_images
from ..formats.images.stacks import WHOLE, Box
from ..particles.detections import Detections
from ..particles.tracks import Tracks
from ..tracking import TrackingRun, TrackingSettings, track

_RADII = 4.0
"""Margin around a region that is read as well, in spot radii: filters need it at the border."""
_MARGIN = 16
"""The same margin in voxels, where the radius is not known yet."""
Range = tuple[float, float]
EVERYWHERE: Range = (-math.inf, math.inf)


@dataclass(frozen=True)
class Crop:
    """Region, frames and mask as the command line takes them.

    Parameters
    ----------
    region : str or None
        ``z0:z1,y0:y1,x0:x1``; a range without a start or end, such as ``:5``, is open on that side.
    frames : str or None
        ``A:B``: the first, and the one after the last.
    mask : str or None
        A file of images; voxels that are not 0 are included.
    """

    region: str | None = None
    frames: str | None = None
    mask: str | None = None

    def __post_init__(self) -> None:
        CropBounds.from_texts(self.region, self.frames)

    def __bool__(self) -> bool:
        return self != Crop()

    def bounds(self) -> CropBounds:
        """The `CropBounds` of these texts, with the mask opened.

        Raises
        ------
        InputError
            If the mask cannot be read.
        """
        mask = None if self.mask is None else open_images(self.mask)
        return CropBounds.from_texts(self.region, self.frames, mask)


Part = Crop
"""The former name, for one release."""


@dataclass(frozen=True, eq=False)
class CropBounds:
    """The part of a movie that is analysed.

    Parameters
    ----------
    region : 3 pairs of float
        From and to along z, y, x: from <= value < to.
    frames : (int, int or None)
        First frame, and the one after the last; None is the end of the movie.
    mask : Images or None
        Voxels that are not 0 are included; one frame for the whole movie, or one for each frame.

    Raises
    ------
    SettingsError
        If a range is empty.

    Examples
    --------
    >>> bounds = CropBounds.from_texts(":,2:,0:10", "1:")
    >>> seen = Detections.from_table([0, 1, 1], [[0, 3, 3], [0, 3, 3], [0, 1, 3]])
    >>> bounds.holds(seen).tolist()
    [False, True, False]
    """

    region: tuple[Range, Range, Range] = (EVERYWHERE,) * 3
    frames: tuple[int, int | None] = (0, None)
    mask: Images | None = None

    def __post_init__(self) -> None:
        first, end = self.frames
        if first < 0 or (end is not None and end <= first):
            raise SettingsError(
                f"frames is {first}:{'' if end is None else end}; it must be A:B, 0 <= A < B."
            )
        if not all(low < high for low, high in self.region):
            raise SettingsError(f"region is {self.region}; each range must be A:B with A < B.")

    @classmethod
    def from_texts(cls, region: str | None, frames: str | None, mask: Images | None = None) -> CropBounds:
        """Parse ``z0:z1,y0:y1,x0:x1`` and ``A:B``; a missing start or end leaves a range open.

        Raises
        ------
        SettingsError
            If a text has another form.
        """
        ranges = [EVERYWHERE] * 3
        if region is not None:
            ranges = [_range(side, "region is z0:z1,y0:y1,x0:x1") for side in region.split(",")]
            if len(ranges) != 3:
                raise SettingsError(f"region is {region!r}; it must be z0:z1,y0:y1,x0:x1.")
        first, end = (0.0, math.inf) if frames is None else _range(frames, "frames are A:B")
        first = max(first, 0.0) if first == -math.inf else first
        if not (first.is_integer() and (end == math.inf or end.is_integer())):
            raise SettingsError(f"frames is {frames!r}; it must be A:B with whole numbers.")
        z, y, x = ranges
        return cls((z, y, x), (int(first), None if end == math.inf else int(end)), mask)

    @property
    def is_all(self) -> bool:
        """Whether the bounds include the whole movie."""
        return self.region == (EVERYWHERE,) * 3 and self.frames == (0, None) and self.mask is None

    def holds(self, seen: Detections, voxel: tuple[float, float, float] | None = None) -> NDArray[np.bool_]:
        """(N,) bool: which detections lie within the bounds.

        Parameters
        ----------
        seen : Detections
            Region and positions are in the same unit.
        voxel : tuple of 3 float, optional
            Size of a voxel of the region and the mask in the unit of the positions. Default: the region is
            in that unit, the mask's voxels as it states them, or 1 where positions are in pixels.

        Raises
        ------
        InputError
            If the mask has fewer frames than the movie.
        """
        first, end = self.frames
        inside = (seen.frame >= first) & (seen.frame < (np.inf if end is None else end))
        low, high = np.array(self.region).T
        place = seen.position / (voxel or (1.0, 1.0, 1.0))
        inside &= ((place >= low) & (place < high)).all(axis=1)
        if self.mask is not None:
            some = seen.take(inside)
            at = some.position / voxel if voxel else some.on_grid(self.mask.calibration).position
            inside[inside] = self._in_mask(self.mask, some, at)
        return inside

    def _in_mask(self, mask: Images, seen: Detections, voxels: NDArray[np.float64]) -> NDArray[np.bool_]:
        inside = np.zeros(len(seen), dtype=np.bool_)
        at = np.floor(voxels + 0.5).astype(np.int64)
        within: NDArray[np.bool_] = np.all((at >= 0) & (at < mask.shape), axis=1)
        frames = np.unique(seen.frame)
        if mask.frame_count > 1 and len(frames) and frames[-1] >= mask.frame_count:
            raise InputError(
                f"{mask.name} has {mask.frame_count} frames, and the movie a frame {frames[-1]}. "
                "A mask has one frame, or one for each of the movie's."
            )
        one = next(mask.frames([0])) if mask.frame_count == 1 else None
        for frame in frames.tolist():
            image = next(mask.frames([frame])) if one is None else one
            rows = np.arange(len(seen))[seen.rows_of(frame)]
            rows = rows[within[rows]]
            inside[rows] = image[tuple(at[rows].T)] != 0
        return inside

    def of(self, movie: Images, radius: tuple[float, float] | None = None) -> CroppedMovie:
        """The part of the images that must be read for these bounds.

        Parameters
        ----------
        movie : Images
        radius : (float, float), optional
            Radius of a spot along z and within a plane, if it is known. It sets the margin that is read
            around the region.

        Raises
        ------
        SettingsError
            If region or frames lie outside the movie.
        InputError
            If the mask has another size.
        """
        if self.mask is not None and self.mask.shape != movie.shape:
            raise InputError(
                f"{self.mask.name} has {self.mask.shape} voxels, and a frame {movie.shape}. "
                "Give a mask of the same size."
            )
        first, end = self.frames
        last = movie.frame_count if end is None else end
        if last > movie.frame_count or first >= movie.frame_count:
            raise SettingsError(f"frames is {first}:{last}, and there are {movie.frame_count}, from 0 up.")
        box = []
        for axis, ((low, high), length) in enumerate(zip(self.region, movie.shape, strict=True)):
            if low >= length or high <= 0:
                raise SettingsError(
                    f"region along {'zyx'[axis]} is {low}:{high}; the images have 0:{length}."
                )
            margin = _MARGIN
            if radius is not None:
                margin = math.ceil(_RADII * radius[axis > 0] / movie.spacing[axis])
            start = 0 if low == -math.inf else max(math.floor(low) - margin, 0)
            stop = length if high == math.inf else min(math.ceil(high) + margin, length)
            box.append(slice(start, stop))
        whole = all(side == slice(0, length) for side, length in zip(box, movie.shape, strict=True))
        return CroppedMovie(self, movie, range(first, last), WHOLE if whole else (box[0], box[1], box[2]))


@dataclass(frozen=True, eq=False)
class CroppedMovie:
    """The box and the frames of a movie that must be read for a crop."""

    bounds: CropBounds
    movie: Images
    numbers: range
    box: Box

    @property
    def there(self) -> list[int]:
        """The frames that are not missing."""
        return [number for number in self.numbers if number not in self.movie.missing]

    def frames(self) -> Iterator[NDArray]:
        """The frames, cropped to the box."""
        return self.movie.frames(self.there, self.box)

    def placed(self, found: Detections) -> Detections:
        """Detections within the bounds, with frame numbers and positions of the whole movie."""
        if self.bounds.is_all and not self.movie.missing:
            return found
        offset = [side.start or 0 for side in self.box]
        moved = Detections(
            np.asarray(self.there, np.int32)[found.frame],
            found.position + np.multiply(offset, self.movie.spacing), found.calibration, found.features,
        )  # fmt: skip
        return moved.take(self.bounds.holds(moved, self.movie.spacing))


def track_part(
    detections: Detections,
    settings: TrackingSettings | None = None,
    crop: Crop = Crop(),
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TrackingRun:
    """Link the selected frames of a movie, then keep the tracks inside its region and mask.

    Parameters
    ----------
    detections, settings, workers, progress
        As for `outbid.track`.
    crop : Crop
        Its region is in the unit of the positions; voxels of the mask are those that it states, or those of
        ``settings.spacing``, where positions are in voxels.

    Returns
    -------
    TrackingRun

    Raises
    ------
    OutbidError
        As `outbid.track`, or if the mask cannot be read.

    Examples
    --------
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 1], [0, 0, 2], [0, 0, 3]])
    >>> run = track_part(seen, TrackingSettings(max_distance=2.0), Crop(region=":,:,0:2.5"))
    >>> run.tracks.links.tolist(), run.stats["leave"]
    ([[0, 1]], 1)
    """
    if not crop:
        return track(detections, settings, workers=workers, progress=progress)
    bounds = crop.bounds()
    chosen = CropBounds(frames=bounds.frames).holds(detections)
    run = track(detections.take(chosen), settings, workers=workers, progress=progress)
    return linked_within(run, bounds.holds(run.tracks.detections))


def linked_within(run: TrackingRun, inside: NDArray[np.bool_]) -> TrackingRun:
    """Restrict a run to some detections: a track that leaves them ends there, which is not a death.

    All detections of the movie are linked first, because those outside the region influence the links: a
    particle that leaves the region does not count as a death, and its track is not joined to another one
    at the border.

    Parameters
    ----------
    run : TrackingRun
    inside : (N,) bool array
        True for the detections to keep.

    Returns
    -------
    TrackingRun
        In its stats also ``leave`` and ``enter``: links that were cut.
    """
    tracks = run.tracks
    source, target = inside[tracks.links].T if len(tracks.links) else np.empty((2, 0), np.bool_)
    kept = source & target
    number = np.cumsum(inside) - 1
    cut = Tracks(
        tracks.detections.take(inside),
        number[tracks.links[kept]],
        **{name: values[kept] for name, values in tracks.measures.items()},
    )
    gaps = np.diff(cut.detections.frame[cut.links], axis=1).ravel()
    step = 1 if run.learned is None else run.learned.interval
    counts: dict[str, int | float | str] = {
        "links": len(cut.links), "gap_links": int((gaps > step).sum()),
        "divisions": int((cut.successors > 1).sum()), "merges": int((cut.predecessors > 1).sum()),
        "tracks": cut.track_count, "leave": int((source & ~target).sum()),
        "enter": int((~source & target).sum()),
    }  # fmt: skip
    return replace(run, tracks=cut, stats={**run.stats, **counts})


def _range(text: str, wanted: str) -> Range:
    low, colon, high = text.partition(":")
    try:
        ends = float(low or -math.inf), float(high or math.inf)
    except ValueError:
        ends = (math.nan, math.nan)
    if not colon or not ends[0] < ends[1]:
        raise SettingsError(f"{text!r} is no range; {wanted}, with A < B.")
    return ends
