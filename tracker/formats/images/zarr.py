"""Zarr images, from disk or URL: OME-Zarr 0.4 and 0.5, and plain arrays; chunked or sharded."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ..files.packages import damage_explained, missing, opened
from ..files.units import TIMES, unit_of
from .hdf5 import letters
from .stacks import ImageFormat, Stack, refuse_absent, refuse_level, scene_in

_LOG = logging.getLogger("outbid")


def open_stack(source: str, scene: int | None, level: int) -> Stack:
    """See `stacks.ImageFormat`."""
    node = _opened(source)
    with damage_explained(source, "Zarr"):
        images = _images(node)
        if not images:
            raise InputError(f"{source} holds no image. Give the array or image inside, such as {source}/0.")
        number, listed = scene_in(source, scene, [*images])
        image = list(images.values())[number]
        stack = _plain(source, image, level) if hasattr(image, "dtype") else _multiscale(source, image, level)
        return replace(stack, scenes=listed)


def recognises(source: str) -> bool:
    """Whether a name is that of a zarr store, or a folder with any name contains one."""
    marks = ("zarr.json", ".zgroup", ".zarray")
    return ".zarr" in source.lower() or any((Path(source) / mark).exists() for mark in marks)


def _opened(source: str) -> Any:
    """Open the group or array, read-only."""
    with opened(source, "Zarr", "zarr") as zarr:
        try:
            if "://" not in source and source.lower().endswith(".zip"):
                return zarr.open(zarr.storage.ZipStore(source, mode="r"), mode="r")
            return zarr.open(source, mode="r")
        except (ImportError, ModuleNotFoundError) as error:
            raise missing(f"{source} ({error})", "zarr") from None
        except FileNotFoundError:
            there = "://" not in source and Path(source).exists()
            why = "cannot be opened by its name. Rename it, to letters of ASCII." if there else ""
            raise InputError(
                f"{source} {why}" if why else f"There is no Zarr at {source}. Check the name."
            ) from None


def _images(node: Any) -> dict[str, Any]:
    """Names of everything that can be read as an image: arrays, and groups with levels."""
    if hasattr(node, "dtype") or "multiscales" in _ome(node):
        return {node.path or node.name: node}
    found: dict[str, Any] = {}
    for name in sorted(node.keys(), key=_natural):
        child = node[name]
        if hasattr(child, "dtype"):
            if child.ndim >= 2 and child.dtype.kind in "biuf":
                found[name] = child
        elif name not in ("OME", "labels"):
            below = {"": child} if "multiscales" in _ome(child) else _images(child)
            found |= {f"{name}/{inner}".rstrip("/"): each for inner, each in below.items()}
    return found


def _natural(key: str) -> tuple[bool, int, str]:
    """Sort key by which 10 follows 9, and names follow numbers."""
    return not key.isdigit(), int(key) if key.isdigit() else 0, key


def _ome(node: Any) -> Mapping[str, Any]:
    """The OME-Zarr metadata, which since version 0.5 are under a separate key."""
    attributes = dict(node.attrs)
    inner = attributes.get("ome")
    return inner if isinstance(inner, dict) else attributes


def _plain(source: str, array: Any, level: int) -> Stack:
    """Read a plain array."""
    refuse_level(source, level)
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS") or []
    return Stack(array, letters([name or "" for name in names], array.ndim))


def _multiscale(source: str, group: Any, level: int) -> Stack:
    """Read an image of OME-Zarr."""
    ome = _ome(group)
    stated = ome["multiscales"][0]
    levels = [group[each["path"]] for each in stated["datasets"]]
    refuse_absent("level", level, source, len(levels))
    array, facts = levels[level], [_axis(each) for each in stated.get("axes") or "tczyx"]
    axes = "".join(axis for axis, _ in facts)
    if len(axes) != array.ndim:
        raise InputError(f"{source} names axes {axes} of an array of {array.ndim}. Write it anew.")
    scales, shifts = np.ones(array.ndim), np.zeros(array.ndim)
    for each in (stated["datasets"][level], stated):
        scales, shifts = _transformed(each, scales, shifts)
    size, shift = (dict(zip(axes, each.tolist(), strict=True)) for each in (scales, shifts))
    units = dict(facts)
    lengths = {unit_of(units[axis]) for axis in "ZYX" if axis in units}
    if len(lengths - {"pixel"}) > 1 or ("pixel" in lengths and units.get("Z") and len(lengths) > 1):
        each = ", ".join(f"{axis.lower()} in {unit_of(units[axis])}" for axis in "ZYX" if axis in units)
        raise InputError(f"{source} has axes in different units ({each}). Write one unit for all.")
    lengths -= {"pixel"}
    seconds = size.get("T", 1.0) * TIMES.get(units.get("T") or "", math.nan)
    channels = ome.get("omero", {}).get("channels", [])
    return Stack(
        array,
        axes,
        (size.get("Z", 1.0), size["Y"], size["X"]),
        lengths.pop() if lengths else "pixel",
        seconds if seconds > 0 else None,
        "Z" in axes and bool(units.get("Z")),
        tuple(str(each.get("label", "")) for each in channels),
        (),
        tuple(tuple(each.shape) for each in levels),
        (shift.get("Z", 0.0), shift["Y"], shift["X"]),
    )


def _axis(stated: Any) -> tuple[str, str | None]:
    """Letter and unit of an axis; before version 0.4, an axis was only a name."""
    name = stated if isinstance(stated, str) else str(stated["name"])
    unit = None if isinstance(stated, str) else stated.get("unit")
    return name[:1].upper(), unit


def _transformed(
    stated: Mapping[str, Any], scale: NDArray[np.float64], shift: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scale and shift of each axis after the coordinate transformations, in their order."""
    for each in stated.get("coordinateTransformations") or []:
        kind = each.get("type")
        given = np.array(each.get(kind, ()), dtype=np.float64)
        if kind == "identity":
            continue
        if kind not in ("scale", "translation") or given.shape != scale.shape:
            how = "an array of its own" if "path" in each else f"{given.size} numbers for {scale.size} axes"
            _LOG.warning(
                "A coordinate transformation of kind %r with %s is not read: sizes and places are without it."
                " To set the size of a voxel: --spacing Z Y X (Python: spacing=).", kind, how,
            )  # fmt: skip
        elif kind == "scale":
            scale, shift = scale * given, np.where(shift == 0, 0, shift * given)
        else:
            shift = shift + given
    return scale, shift


FORMAT = ImageFormat(open_stack, recognises=recognises)
