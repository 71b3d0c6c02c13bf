"""The result of an image reader: an array that is read piece by piece, with axes and voxel size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, SettingsError
from ...particles.calibration import checked_spacing

Box = tuple[slice, slice, slice]
"""Region of a frame along z, y and x."""
WHOLE: Box = (slice(None), slice(None), slice(None))
_SHOWN = 8
"""Scenes that a message lists."""


@dataclass(frozen=True)
class Chosen:
    """What the caller chose of a movie, see `opening.open_images`."""

    axes: str | None = None
    channel: int = 0
    scene: int | None = None
    level: int = 0
    spacing: tuple[float, float, float] | None = None
    partial: bool = False

    def __post_init__(self) -> None:
        if self.axes is not None and not isinstance(self.axes, str):
            raise SettingsError(f"axes is {self.axes!r}; it must be letters of TZCYX, such as 'TZYX'.")
        for name, number in (("channel", self.channel), ("scene", self.scene), ("level", self.level)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, Integral)):
                raise SettingsError(f"{name} is {number!r}; it must be a whole number, from 0 up.")
        if self.spacing is not None:
            checked_spacing(self.spacing)


class Sliced(Protocol):
    """An array that is read when it is indexed by integers and slices."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype: ...
    def __getitem__(self, where: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Stack:
    """A multi-dimensional image with its metadata."""

    array: Sliced
    axes: str  # one letter of TZCYXS per axis; any other letter marks an unnamed axis
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)  # size of a voxel along z, y, x, in `unit`
    unit: str = "pixel"
    interval: float | None = None  # seconds from frame to frame
    depth: bool = False  # whether the file states the distance between planes
    channels: tuple[str, ...] = ()  # names of the channels, if the file states them
    scenes: tuple[str, ...] = ()  # descriptions of the images, if there are several and none was chosen
    levels: tuple[tuple[int, ...], ...] = ()  # sizes at each level of resolution
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)  # place of the first voxel along z, y, x
    white_is_zero: bool = False  # whether the file says that its lowest number is white
    times: tuple[float, ...] = ()  # seconds of each frame, if the file states them

    @property
    def sizes(self) -> tuple[int, ...]:
        """Length of each axis."""
        return tuple(int(size) for size in self.array.shape)


def named_axes(name: str, stack: Any, given: str | None, *, several: bool = False) -> str:
    """Axes with all names filled in; unnamed axes become time and z.

    `given` are the axes as the caller names them; `several`: whether each of several files is a frame.

    Raises
    ------
    SettingsError
        If the given axes are invalid.
    InputError
        If the meaning of an axis remains unclear.

    Examples
    --------
    >>> named_axes("a.zarr", Stack(np.zeros((9, 3, 8, 8)), "QQYX"), None)
    'TZYX'
    """
    named = stack.axes
    if given is not None:
        named = given.upper()
        squeezed = "".join(axis for axis in named if axis in "TZCYX")
        if squeezed != named or len(set(named)) != len(named) or not {"Y", "X"} <= set(named):
            raise SettingsError(f"axes is {given!r}; it needs Y and X, and may have T, Z, C, each once.")
        named += "S" if stack.axes.endswith("S") else ""
        if len(named) != len(stack.axes):
            raise SettingsError(
                f"axes {given!r} names {len(given)} axes; {name} has {len(stack.axes)}, of sizes "
                f"{stack.sizes}."
            )
    unknown = [axis for axis in named if axis not in "TZCYXS"]
    free = [axis for axis in ("ZT" if several or len(unknown) > 1 else "TZ") if axis not in named]
    if unknown and len(unknown) <= len(free):  # from the outermost axis inwards: T, Z
        given_now = iter(sorted(free[: len(unknown)]))
        named = "".join(axis if axis in "TZCYXS" else next(given_now) for axis in named)
    plain = named.removesuffix("S")  # a stack of 3 or 4 planes written without axes is read as SYX
    if {*plain} - {*"TZCYX"} or len(set(plain)) != len(plain) or not {"Y", "X"} <= set(plain):
        raise InputError(
            f"{name} has axes {named} of sizes {stack.sizes}, which do not say what they are. Name them with "
            "--axes, such as TZYX, or convert the file."
        )
    return named


def warnings_of(stack: Any, named: str, chosen: Chosen, *, several: bool = False) -> Iterator[str]:
    """Sentences about metadata that were guessed, because neither the caller nor the file stated them.

    `named` are the axes as they were interpreted; `several` as for `named_axes`.
    """
    axes = chosen.axes
    size = dict(zip(named, stack.sizes, strict=True))
    deep = size.get("Z", 1) > 1
    if stack.scenes:
        yield (
            f"There are several scenes ({listed(stack.scenes)}): the first is taken. For another: --scene N."
        )
    if size.get("C", 1) > 1:
        names = f" ({', '.join(stack.channels[:8])})" if any(stack.channels) else ""
        times = ""
        if "T" not in size:
            times = f" If they are times: --axes {named.replace('C', 'T').rstrip('S')}."
        taken = f"There are {size['C']} channels{names}: channel {chosen.channel} is taken."
        yield f"{taken} For another: --channel N, from 0.{times}"
    if axes is None and {*stack.axes} - {*"TZCYXS"} and not several:
        yield f"The file does not name its axes of {stack.sizes}: taken for {named}. To name them: --axes."
    elif axes is None and deep and not several and size.get("T", 1) == 1:
        times = named.replace("T", "").replace("Z", "T").rstrip("S")
        yield f"This is one frame of {size['Z']} planes. If they are times: --axes {times}."
    if chosen.spacing is None and deep and not stack.depth:
        yield f"How far planes are apart is not known: taken for 1 {stack.unit}. To set it: --spacing Z Y X."


def frames_of(
    stack: Stack, named: str, channel: int, numbers: Sequence[int], box: Box = WHOLE
) -> Iterator[NDArray]:
    """Yield frames of a channel as (z, y, x) arrays; only the region in `box` is read.

    `named` are the axes of the stack, in any order.

    Examples
    --------
    >>> stack = Stack(np.arange(24).reshape(2, 3, 4), "XTY")
    >>> next(frames_of(stack, "XTY", 0, [1], (slice(None), slice(1, 3), slice(None)))).tolist()
    [[[5, 17], [6, 18]]]
    """
    inside = dict(zip("ZYX", box, strict=True))
    kept = [axis for axis in named if axis in "ZYXS"]
    order = [kept.index(axis) for axis in "ZYXS" if axis in kept]
    for number in numbers:
        where: dict[str, int | slice] = {"T": number, "C": channel, "S": slice(None), **inside}
        found = np.asarray(stack.array[tuple(where[axis] for axis in named)]).transpose(order)
        if "Z" not in kept:
            found = found[None][inside["Z"]]
        yield grey(found) if "S" in kept else found


def grey(samples: NDArray) -> NDArray:
    """Average the colour channels; a fourth one, transparency, is ignored."""
    return samples[..., 0] if samples.shape[-1] < 3 else samples[..., :3].mean(axis=-1, dtype=np.float32)


@dataclass(frozen=True)
class ImageFormat:
    """What the module of a format of images offers, as its `FORMAT`.

    Parameters
    ----------
    open_stack : callable
        Opens an image of a file, or of a URL for Zarr, given the number of a scene, if the caller chose one,
        and a level of resolution, of which 0 is the finest. It raises InputError if the file is damaged, has
        no image, or has axes beyond T, C, Z, Y, X; SettingsError if there is no such scene or level; and
        ResourceError if the package is missing that reads the format.
    recognises : callable
        Whether a file, folder or URL whose name fits a pattern is of this format.
    """

    open_stack: Callable[[str, int | None, int], Stack]
    recognises: Callable[[str], bool] = lambda _: True


class OpenFile:
    """Keeps a file open as long as frames may be read: it is closed when this object is deleted.

    By a finalizer, for in a cycle of objects, such as the trace of an error, a ``__del__`` may run after that
    of the file, which then warns that it was left open.
    """

    def __init__(self, file: Any) -> None:
        self.file = file
        finalize(self, file.close)


def refuse_absent(what: str, number: int, path: object, count: int) -> None:
    """Refuse the number of a scene, channel or level that is not there; a SettingsError says what is."""
    if not 0 <= number < count:
        raise SettingsError(f"There is no {what} {number}: {path} has {count}, from 0 up.")


def listed(choice: Sequence[str]) -> str:
    """Descriptions of the first scenes with their numbers, for messages."""
    shown = [f"scene {number}: {what}" for number, what in enumerate(choice[:_SHOWN])]
    left = len(choice) - len(shown)
    return "; ".join(shown) + (f"; and {left} more" if left else "")


def refuse_level(source: str, level: int, remedy: str = "") -> None:
    """Refuse a level of an image that has one only."""
    if level:
        raise SettingsError(f"{source} has no levels{remedy}. Leave --level out.")


def scene_in(source: str, scene: int | None, described: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """The number of the image to read; and the descriptions of all, if there are several to choose from.

    Raises SettingsError if there is no such scene.
    """
    refuse_absent("scene", scene or 0, source, len(described))
    return scene or 0, tuple(described) if len(described) > 1 and scene is None else ()
