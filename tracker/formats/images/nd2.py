"""Nikon ND2 images, read by the package nd2, plane by plane when needed."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np

from ..files.packages import opened
from .stacks import ImageFormat, Stack, refuse_level, scene_in


def open_stack(source: str, scene: int | None, level: int) -> Stack:
    """See `stacks.ImageFormat`."""
    refuse_level(source, level)
    with opened(source, "ND2", "nd2") as nd2, nd2.ND2File(source) as file:
        axes = "".join(file.sizes)
        number, several = scene_in(source, scene, [f"position {k}" for k in range(file.sizes.get("P", 1))])
        array = file.to_dask()
        if "P" in axes:
            array = array[tuple(number if axis == "P" else slice(None) for axis in axes)]
        voxel = file.voxel_size()
        interval, times = _interval(file.experiment), _times(file, number)
        channels = tuple(each.channel.name for each in getattr(file.metadata, "channels", None) or ())
        deep = "Z" in axes and _z_is_known(file.experiment)
    return Stack(
        array, axes.replace("P", ""), (voxel.z if deep else 1.0, voxel.y, voxel.x), "micrometer", interval,
        deep, channels, several, times=times,
    )  # fmt: skip


def _interval(loops: list[Any]) -> float | None:
    """Seconds between time points, as planned or measured."""
    for loop in loops:
        if loop.type in ("TimeLoop", "NETimeLoop"):
            parameters = loop.parameters
            periods = getattr(parameters, "periods", None) or [parameters]
            measured = getattr(periods[0], "periodDiff", None)
            seconds = (measured.avg if measured and measured.avg else periods[0].periodMs) / 1000
            return float(seconds) if seconds > 0 else None
    return None


def _times(file: Any, position: int) -> tuple[float, ...]:
    """Seconds of the first plane of each time point at a position; none if the file does not have them."""
    with suppress(Exception), warnings.catch_warnings():  # pixels are readable without times
        warnings.simplefilter("ignore")  # of files without times
        table = file.events(orient="list")
        time, zero = np.array(table["Time [s]"], np.float64), np.zeros(len(table["Time [s]"]))
        own = np.array(table.get("P Index", zero + position)) == position
        begins = own & (np.array(table.get("Z Index", zero)) == 0)
        return tuple(time[begins].tolist())
    return ()


def _z_is_known(loops: list[Any]) -> bool:
    """Whether the file states the distance between planes."""
    return any(loop.type == "ZStackLoop" and loop.parameters.stepUm for loop in loops)


FORMAT = ImageFormat(open_stack)
