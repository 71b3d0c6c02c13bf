"""Nikon ND2 images, read by the package nd2, plane by plane when needed."""

from __future__ import annotations

from typing import Any

from ..errors import SettingsError
from .stacks import Stack, damage_explained, missing
from .tiff_scenes import refuse_scene

SUFFIXES = (".nd2",)


def open_stack(source: str, scene: int | None, level: int) -> Stack:
    """Read one stage position with all times, planes and channels.

    Raises
    ------
    InputError
        If the file is damaged.
    SettingsError
        If there is no such scene, or if a level is chosen, which the format does not have.
    ResourceError
        If nd2 is missing.
    """
    try:
        import nd2
    except ModuleNotFoundError:
        raise missing("ND2", "nd2") from None
    if level:
        raise SettingsError(f"{source} has no levels. Leave --level out.")
    with damage_explained(source, "ND2"), nd2.ND2File(source) as file:
        axes = "".join(file.sizes)
        count = file.sizes.get("P", 1)
        refuse_scene(source, scene or 0, count)
        array = file.to_dask()
        if "P" in axes:
            array = array[tuple((scene or 0) if axis == "P" else slice(None) for axis in axes)]
        voxel = file.voxel_size()
        interval = _interval(file.experiment)
        channels = tuple(each.channel.name for each in getattr(file.metadata, "channels", None) or ())
        deep = "Z" in axes and _z_is_known(file.experiment)
    several = tuple(f"position {number}" for number in range(count))
    return Stack(
        array,
        axes.replace("P", ""),
        (voxel.z if deep else 1.0, voxel.y, voxel.x),
        "micrometer",
        interval,
        deep,
        channels,
        several if count > 1 and scene is None else (),
    )


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


def _z_is_known(loops: list[Any]) -> bool:
    """Whether the file states the distance between planes."""
    return any(loop.type == "ZStackLoop" and loop.parameters.stepUm for loop in loops)
