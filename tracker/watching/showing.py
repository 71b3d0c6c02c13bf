"""A movie while it is recorded, as arrays: images, read when they are looked at, and the latest tracks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import OutbidError
from ..particles.detections import Detections
from ..particles.tracks import Tracks
from .following import Followed
from .sources import NotYet, Source
from .tail import TailReader

_KEPT = 4
"""Guard: images that are kept: napari takes one several times."""
LOOKS = 3
"""Looks at a source in which a file that is whole has become known to it."""


class LiveFrames:
    """(T, Z, Y, X) array of the frames so far, without z in 2D; T grows.

    Parameters
    ----------
    source : Source
        Of the images.
    tail : TailReader
        Which image each frame is.
    """

    def __init__(self, source: Source, tail: TailReader) -> None:
        self._source, self._tail = source, tail
        self._kept: dict[int, NDArray] = {}
        self._last: NDArray = np.zeros((1, 1, 1), np.uint16)
        self.length = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return (self.length, *self._frame(self._last).shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """As of an array."""
        return self._last.dtype

    @property
    def ndim(self) -> int:
        """As of an array."""
        return len(self.shape)

    def __getitem__(self, key: Any) -> NDArray:
        """Frames, of which each is read."""
        at, *rest = key if isinstance(key, tuple) else (key,)
        if not isinstance(at, slice):
            return self._frame(self.read(int(at)))[tuple(rest)]
        frames = [self._frame(self.read(frame)) for frame in range(*at.indices(self.length))]
        return np.array(frames, self.dtype).reshape(-1, *self.shape[1:])[(slice(None), *rest)]

    def read(self, frame: int) -> NDArray:
        """(Z, Y, X) image of a frame; zeros if it is missing, the one before if it cannot be read yet."""
        if frame not in self._kept:
            number = self._number(frame)
            image = np.zeros_like(self._last) if number is None else self._image(number)
            if image is None:
                return self._last
            self._last = self._kept[frame] = image
            self._kept = dict([*self._kept.items()][-_KEPT:])
        return self._kept[frame]

    def _image(self, number: int) -> NDArray | None:
        for _ in range(LOOKS):
            try:
                image = self._source.read(number)
                return image if isinstance(image, np.ndarray) else None
            except (NotYet, KeyError):
                if not self._polled():
                    return None
            except (OutbidError, OSError):
                return None
        return None

    def _polled(self) -> bool:
        """Look for new images; whether that was possible."""
        with suppress(OutbidError, OSError):
            self._source.poll()
            return True
        return False

    def _number(self, frame: int) -> int | None:
        """Number of the image of a frame; where it is not known, by the first and the last that are."""
        known = self._tail.image
        if frame in known or len(known) < 2:
            return known.get(frame)
        (begin, first), (end, last) = min(known.items()), max(known.items())
        step, rest = divmod(last - first, end - begin)
        return None if rest else first + (frame - begin) * step

    def _frame(self, image: NDArray) -> NDArray:
        return image[0] if image.shape[0] == 1 else image


def joined(frames: Sequence[Followed]) -> tuple[Detections, NDArray[np.int64], NDArray, NDArray[np.int64]]:
    """Detections of some frames by frame and track; their tracks, probabilities, and parents that are there.

    A parent stands at the first detection of a track alone, else -1.
    """
    seen = Detections.joined([one.detections for one in frames])
    track, chance, parent = (
        np.concatenate([getattr(one, name) for one in frames]) for name in ("track", "probability", "parent")
    )
    order = np.lexsort((track, seen.frame))
    seen, track, chance, parent = seen.take(order), track[order], chance[order], parent[order]
    first = np.zeros(len(track), np.bool_)
    first[np.unique(track, return_index=True)[1]] = True
    return seen, track, chance, np.where(first & np.isin(parent, track), parent, -1)


def live_tracks(frames: Sequence[Followed]) -> tuple[Tracks, NDArray[np.int64], NDArray]:
    """Tracks of some frames, the numbers that they have live, and how certain each detection's link is."""
    seen, track, chance, parent = joined(frames)
    tracks = Tracks.from_track_ids(seen, track, parent)
    number = np.zeros(tracks.track_count, np.int64)
    number[tracks.track_id] = track
    sure = np.nan_to_num(chance[tracks.links[:, 1]], nan=1.0)
    return replace(tracks, link_probability=sure), number, chance
