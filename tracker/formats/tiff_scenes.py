"""Choose which images of a TIFF file are read: a single one, or all that are frames of one movie.

tifffile groups the pages of a file into series and reads the first one. Here each series is a scene. Scenes
that are not read are reported, and images that were written one by one are joined to a movie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, SettingsError

_BY_LIKENESS = {"generic", "uniform", "shaped"}
"""Kinds of series that are not named as separate images by a header."""
_MOST_LISTED = 8


@dataclass(frozen=True, eq=False)
class Scene:
    """The part of a file that is read.

    Parameters
    ----------
    series : tuple of tifffile.TiffPageSeries
        Series of one kind and size; several of them form a first axis, called I.
    number : int
        Number of the first series.
    choice : tuple of str
        Descriptions of all scenes, if the file has more than `series` and none was chosen.
    """

    series: tuple[Any, ...]
    number: int = 0
    choice: tuple[str, ...] = ()

    @property
    def axes(self) -> str:
        """As tifffile names them."""
        return "I" * (len(self.series) > 1) + str(self.series[0].axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Length of each of the axes."""
        own = tuple(int(size) for size in self.series[0].shape)
        return (len(self.series), *own) if len(self.series) > 1 else own


def scene_of(path: Path, tiff: Any, number: int | None) -> Scene:
    """The scene with this number; if none is given, all images that are frames of one movie.

    Raises
    ------
    SettingsError
        If there is no such scene.
    InputError
        If no scene is chosen and the images differ in size or type, or some belong to no scene.
    """
    images = [one for one in tiff.series if not one.keyframe.is_reduced] or list(tiff.series)
    large = [
        one for one in tiff.series if one not in images and one.keyframe.shape == images[0].keyframe.shape
    ]
    if large and number is None:  # otherwise it would be skipped silently
        raise InputError(
            f"{path} marks an image as a reduced one that is as large as the others (page "
            f"{large[0].keyframe.index}). Save the file again; to leave it out: --scene 0."
        )
    if number is not None:
        refuse_scene(path, number, len(images))
        return Scene((images[number],), number)
    _refuse_unknown_pages(path, tiff, images)
    if len(images) == 1:
        return Scene((images[0],))
    if images[0].kind not in _BY_LIKENESS:
        return Scene((images[0],), choice=tuple(map(_described, images)))
    alike = {(one.kind, one.axes, tuple(one.shape), str(one.dtype)) for one in images}
    if len(alike) == 1 and "T" not in images[0].axes:
        return Scene(tuple(images))
    raise InputError(
        f"{path} holds {len(images)} images that do not fit together ({listed([*map(_described, images)])}). "
        "Choose one with --scene, or save them as one stack."
    )


def refuse_scene(path: Path | str, number: int, count: int) -> None:
    """Refuse the number of a scene that does not exist.

    Raises
    ------
    SettingsError
        The message states the number of scenes.
    """
    if not 0 <= number < count:
        raise SettingsError(f"There is no scene {number}: {path} has {count}, from 0 up.")


def listed(choice: Sequence[str]) -> str:
    """Descriptions of the first scenes with their numbers, for messages."""
    said = [f"scene {number}: {what}" for number, what in enumerate(choice[:_MOST_LISTED])]
    left = len(choice) - len(said)
    return "; ".join(said) + (f"; and {left} more" if left else "")


def planes_of(
    tiff: Any, scene: Scene, planes: list[int], refuse: Callable[[list[Any], Any], None]
) -> NDArray:
    """Read planes, numbered through all series of the scene, as a (planes, samples) array.

    Parameters
    ----------
    tiff : tifffile.TiffFile
    scene : Scene
    planes : list of int
    refuse : callable
        Function that checks the pages to be decoded against a reference page.
    """
    first = scene.series[0]
    held = math.prod(first.shape[: len(first.axes.rstrip("S")) - 2])
    samples = math.prod(first.shape) // held
    pieces = []
    for number, group in groupby(planes, key=lambda plane: plane // held):
        series, own = scene.series[number], [plane % held for plane in group]
        if math.prod(series.keyframe.shape) == samples:
            pages = [series.pages[plane] for plane in own]
            refuse(pages, series.keyframe)
            for handle in {page.parent.filehandle for page in pages if page is not None}:
                if handle.closed:  # one of several files
                    handle.open()
            found = tiff.asarray(key=own, series=series)
        else:  # several planes in one page
            refuse(list(series.pages), series.keyframe)
            found = series.asarray().reshape(held, -1)[own]
        pieces.append(found.reshape(len(own), samples))
    return np.concatenate(pieces)


def _described(image: Any) -> str:
    """A description of a series: name, size and type."""
    name = f"{str(image.name)[:40]!r} " if image.name else ""
    return f"{name}{' x '.join(map(str, image.shape))} {image.dtype}"


def _refuse_unknown_pages(path: Path, tiff: Any, images: list[Any]) -> None:
    """Refuse a file with images that belong to no scene because its header describes fewer."""
    count = len(tiff.pages)
    if count <= sum(len(one.pages) for one in tiff.series):
        return
    there = sum(not tiff.pages.get(page, aspage=True).is_reduced for page in range(count))
    held = sum(len(one.pages) for one in images)
    if there > held:
        raise InputError(
            f"{path} holds {there} images, of which its header describes {held}. Save the file again; "
            "to read no more than the header describes: --scene 0."
        )
