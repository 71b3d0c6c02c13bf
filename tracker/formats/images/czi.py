"""Zeiss CZI images, read by czifile; frames are assembled from tiles when they are needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ..files.memory import refuse_if_larger_than_memory
from ..files.packages import damage_explained, opened
from ..files.units import MICROMETRES
from .stacks import ImageFormat, OpenFile, Stack, refuse_level, scene_in

_LETTERS = "TCZYX"
_EMPTY = 100
"""Guard: voxels of a movie for each that is stored; more come from a damaged position of a tile."""


@dataclass(frozen=True, eq=False)
class _Tile:
    """A block of pixels: its start and length along each axis, and its reader."""

    spans: dict[str, tuple[int, int]]
    scene: int
    mosaic: int
    dtype: np.dtype
    samples: int
    entry: Any


def open_stack(source: str, scene: int | None, level: int) -> Stack:
    """See `stacks.ImageFormat`."""
    refuse_level(source, level)
    with opened(source, "CZI", "czifile") as czifile:
        opened_file = OpenFile(czifile.CziFile(source))
        tiles = [_tile(entry) for entry in opened_file.file.subblock_directory if _is_whole(entry)]
        scenes = sorted({tile.scene for tile in tiles})
        if not tiles:
            raise InputError(f"{source} holds no image. Check where it was made.")
        number, listed = scene_in(source, scene, list(map(str, scenes)))
        pixels = _Pixels(opened_file, source, [tile for tile in tiles if tile.scene == scenes[number]])
        text = opened_file.file.metadata()
        stack = Stack(pixels, _LETTERS + "S", scenes=listed, times=_times(opened_file.file))
        return _described(stack, text if isinstance(text, str) else bytes(text).decode("utf-8", "replace"))


class _Pixels:
    """Array (T, C, Z, Y, X, S) that reads tiles when it is indexed."""

    def __init__(self, opened_file: OpenFile, source: str, tiles: Sequence[_Tile]) -> None:
        self._file, self._source, self._tiles = (
            opened_file,
            source,
            sorted(tiles, key=lambda tile: tile.mosaic),
        )
        self._start, shape = [], []
        for axis in _LETTERS:
            ends = [tile.spans.get(axis, (0, 1)) for tile in tiles]
            self._start.append(min(start for start, _ in ends))
            shape.append(max(start + size for start, size in ends) - self._start[-1])
        for axis in {axis for tile in tiles for axis in tile.spans} - {*_LETTERS}:
            if len({tile.spans.get(axis, (0, 1)) for tile in tiles}) > 1:
                raise InputError(
                    f"{source} has several images along {axis}. Export the one meant as OME-TIFF."
                )
        self.shape = (*shape, tiles[0].samples)
        self.dtype = np.result_type(*{tile.dtype for tile in tiles})
        planes = sum(tile.spans.get("T", (0, 1))[1] * tile.spans.get("C", (0, 1))[1] for tile in tiles)
        if planes > Path(source).stat().st_size:
            raise InputError(f"{source} declares {planes} planes, more than its bytes. Copy it again.")
        self._by_plane: dict[tuple[int, int], list[_Tile]] = {}
        for tile in self._tiles:
            (t, times), (c, channels) = (tile.spans.get(axis, (0, 1)) for axis in "TC")
            for when in range(t, t + times):
                for channel in range(c, c + channels):
                    self._by_plane.setdefault((when, channel), []).append(tile)
        stored = sum(math.prod(tile.spans.get(axis, (0, 1))[1] for axis in _LETTERS) for tile in tiles)
        if len(self._by_plane) * math.prod(shape[2:]) > _EMPTY * stored:
            raise InputError(
                f"{source} has tiles far from each other: they fill less than 1/{_EMPTY} of frames of "
                f"{' x '.join(map(str, shape[2:]))} voxels. Copy it again."
            )

    def __getitem__(self, where: tuple[int, int, slice, slice, slice, slice]) -> NDArray:
        t, c = where[0] + self._start[0], where[1] + self._start[1]
        if (t, c) not in self._by_plane:  # zeros would look like image data
            raise InputError(
                f"{self._source}: of {self.shape[0]} frames, number {where[0]} is not stored for channel "
                f"{where[1]}. Copy the file again, or give the frames that are there."
            )
        frame = self.shape[2:]
        refuse_if_larger_than_memory(self._source, float(np.prod(frame)) * self.dtype.itemsize)
        found = np.zeros(frame, self.dtype)
        with damage_explained(self._source, "CZI"):
            for tile in self._by_plane[t, c]:
                self._paint(tile, t, c, where[2], found)
        return found[where[2:]]

    def _paint(self, tile: _Tile, t: int, c: int, planes: slice, found: NDArray) -> None:
        """Copy a tile into the planes, if it lies within them."""
        spans = [tile.spans.get(axis, (0, 1)) for axis in _LETTERS]
        inside = [start - least for (start, _), least in zip(spans, self._start, strict=True)][2:]
        wanted = range(*planes.indices(found.shape[0]))
        if not any(inside[0] <= z < inside[0] + spans[2][1] for z in wanted):
            return
        data = _values(tile.entry, self._file.file)
        order = [axis for axis in tile.spans if axis in _LETTERS]
        data = data.reshape([tile.spans[axis][1] for axis in order] + [self.shape[-1]])
        data = data.transpose([order.index(axis) for axis in _LETTERS if axis in order] + [len(order)])
        missing_axes = [k for k, axis in enumerate(_LETTERS) if axis not in order]
        data = np.expand_dims(data, tuple(missing_axes))
        data = data[t - spans[0][0], c - spans[1][0]]
        found[tuple(slice(at, at + size) for at, size in zip(inside, data.shape[:3], strict=True))] = data


def _is_whole(entry: Any) -> bool:
    """Whether the entry has full resolution."""
    return int(entry.pyramid_type) == 0 and tuple(entry.shape) == tuple(entry.stored_shape)


def _tile(entry: Any) -> _Tile:
    """Parse an entry of the directory, from an older or newer version of czifile."""
    dtype = np.dtype(entry.dtype)
    dtype = dtype if dtype.subdtype is None else dtype.subdtype[0]
    if hasattr(entry, "dims"):
        spans = dict(zip(entry.dims[:-1], zip(entry.start, entry.shape, strict=True), strict=False))
        scene, mosaic = max(entry.scene_index, 0), entry.mosaic_index
    else:
        spans = {each.dimension: (each.start, each.size) for each in entry.dimension_entries}
        mosaic = spans.pop("M", (-1, 1))[0]
        scene = spans.pop("S", (0, 1))[0]
    return _Tile(spans, scene, mosaic, dtype, int(entry.shape[-1]), entry)


def _values(entry: Any, file: Any) -> NDArray:
    if hasattr(entry, "read_segment_data"):
        return np.asarray(entry.read_segment_data(file).data())
    # Only tiles of full resolution are read; a damaged copy of the entry would ask for zooming without end.
    return np.asarray(entry.data_segment().data(resize=False))


def _times(file: Any) -> tuple[float, ...]:
    """Seconds of each time point, if the file has them."""
    if not getattr(getattr(file, "header", None), "attachment_directory_position", True):
        return ()  # else all of the file is searched
    with suppress(Exception):  # pixels are readable without times
        for attached in file.attachments():
            if attached.attachment_entry.content_file_type == "CZTIMS":
                return tuple(map(float, attached.data()))
    return ()


def _described(stack: Stack, text: str) -> Stack:
    """The image with voxel size, frame interval and channel names from the XML of the file."""
    from defusedxml import ElementTree

    try:
        root = ElementTree.fromstring(text, forbid_dtd=True)
    except Exception:  # the pixels are readable without metadata
        return stack
    found = {
        each.get("Id"): float(value.text)
        for each in root.iterfind(".//Scaling/Items/Distance")
        if (value := each.find("Value")) is not None and value.text
    }
    metres = [found.get(axis, 0.0) for axis in "ZYX"]
    if not metres[2] > 0:
        return stack
    spacing = [value * MICROMETRES if value > 0 else 1.0 for value in metres]
    step = root.find(".//Dimensions/T/Positions/Interval/Increment")
    interval = float(step.text) if step is not None and step.text else None
    channels = tuple(each.get("Name", "") for each in root.iterfind(".//Dimensions/Channels/Channel"))
    return replace(
        stack, spacing=(spacing[0], spacing[1], spacing[2]), unit="micrometer", interval=interval or None,
        depth=metres[0] > 0, channels=channels,
    )  # fmt: skip


FORMAT = ImageFormat(open_stack)
