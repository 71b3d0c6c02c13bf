"""Which images a TIFF file holds, and which of them are read: one, or all that are the frames of one movie.

tifffile sorts the pages of a file into series and reads the first one. Here a series is a scene, no scene
is left out without a word, and images that were written one by one are put together again.
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
"""Kinds of series that no header names as images of their own."""
_MOST_LISTED = 8


@dataclass(frozen=True, eq=False)
class Scene:
    """What is read of a file.

    Parameters
    ----------
    series : tuple of tifffile.TiffPageSeries
        Of one kind and size; several are the elements of a first axis, called I.
    number : int
        Of the first of them.
    choice : tuple of str
        What each of the file's scenes is, where there are more than `series` and nothing was chosen.
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
    """The scene of this number, or what a file is where none is given.

    Raises
    ------
    SettingsError
        If there is no such scene.
    InputError
        If nothing is chosen and images do not fit together, or some belong to no scene.
    """
    images = [one for one in tiff.series if not one.keyframe.is_reduced] or list(tiff.series)
    large = [
        one for one in tiff.series if one not in images and one.keyframe.shape == images[0].keyframe.shape
    ]
    if large and number is None:  # it would be left out without a word
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
    """Complain about the number of a scene that a file has not.

    Raises
    ------
    SettingsError
        With the number of scenes.
    """
    if not 0 <= number < count:
        raise SettingsError(f"There is no scene {number}: {path} has {count}, from 0 up.")


def listed(choice: Sequence[str]) -> str:
    """The first scenes with their numbers, for messages."""
    said = [f"scene {number}: {what}" for number, what in enumerate(choice[:_MOST_LISTED])]
    left = len(choice) - len(said)
    return "; ".join(said) + (f"; and {left} more" if left else "")


def planes_of(
    tiff: Any, scene: Scene, planes: list[int], refuse: Callable[[list[Any], Any], None]
) -> NDArray:
    """(planes, samples) of these planes, counted through all series of the scene.

    Parameters
    ----------
    tiff : tifffile.TiffFile
    scene : Scene
    planes : list of int
    refuse : callable
        Given the pages that are about to be decoded, and the one like which they should be.
    """
    first = scene.series[0]
    held = math.prod(first.shape[: len(first.axes.rstrip("S")) - 2])
    samples = math.prod(first.shape) // held
    pieces = []
    for number, group in groupby(planes, key=lambda plane: plane // held):
        series, own = scene.series[number], [plane % held for plane in group]
        if len(series.pages) >= held:
            refuse([series.pages[plane] for plane in own], series.keyframe)
            found = tiff.asarray(key=own, series=series)
        else:  # planes that share a page
            refuse(list(series.pages), series.keyframe)
            found = series.asarray().reshape(held, -1)[own]
        pieces.append(found.reshape(len(own), samples))
    return np.concatenate(pieces)


def _described(image: Any) -> str:
    """Name, size and type."""
    name = f"{str(image.name)[:40]!r} " if image.name else ""
    return f"{name}{' x '.join(map(str, image.shape))} {image.dtype}"


def _refuse_unknown_pages(path: Path, tiff: Any, images: list[Any]) -> None:
    """Complain about images that no scene has: the header states fewer than there are."""
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
