"""HDF5 images, read by h5py: each numeric data set with at least two axes is a scene."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ...errors import InputError
from ..files.hdf5 import file_at, objects_in
from ..files.packages import damage_explained
from .stacks import ImageFormat, Stack, refuse_level, scene_in

_MOST_AXES = 6


def open_stack(source: str, scene: int | None, level: int) -> Stack:
    """See `stacks.ImageFormat`."""
    refuse_level(source, level, ": choose a data set with --scene")
    file = file_at(source)
    with damage_explained(source, "HDF5"):
        found = [each for each in objects_in(file, {file}) if _is_image(each)]
        if not found:
            raise InputError(f"{source} holds no data set of numbers over y and x. Check where it was made.")
        number, listed = scene_in(source, scene, [f"{each.name} {each.shape}" for each in found])
        data = found[number]
        spacing, depth = _spacing(data)
        unit = "micrometer" if spacing != (1.0, 1.0, 1.0) else "pixel"
        return Stack(data, _axes(data), spacing, unit, None, depth, scenes=listed)


def _is_image(each: Any) -> bool:
    shape = getattr(each, "shape", None) or ()
    return 2 <= len(shape) <= _MOST_AXES and each.dtype.kind in "biuf" and min(shape) > 0


def _axes(data: Any) -> str:
    """Axis letters from dimension labels or an attribute; Q for unnamed axes."""
    # Not by data.dims: HDF5's own function for them crashes on a damaged attribute.
    named = data.attrs.get("DIMENSION_LABELS")
    labels = [""] * len(data.shape) if named is None else [_text(each) for each in np.ravel(named)]
    stated = data.attrs.get("axes", data.attrs.get("axistags"))
    if isinstance(stated, bytes | str):
        text = stated.decode("utf-8", "replace") if isinstance(stated, bytes) else stated
        labels = [each["key"] for each in json.loads(text)["axes"]] if text.startswith("{") else list(text)
    elif stated is not None:
        labels = [str(each) for each in np.asarray(stated).tolist()]
    return letters(labels, len(data.shape))


def _text(label: object) -> str:
    return label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label or "")


def letters(labels: list[Any], count: int) -> str:
    """Axis letters from dimension names: their first letters if among TZCYX; the last two are Y and X.

    Examples
    --------
    >>> letters(["time", "z", "y", "x"], 4), letters(["", "", ""], 3)
    ('TZYX', 'QYX')
    """
    named = [str(label)[:1].upper() or "Q" for label in labels]
    if len(named) != count or len({*named} - {"Q"}) + named.count("Q") != count:
        named = ["Q"] * count
    if not {"Y", "X"} & {*named}:
        named[-2:] = ["Y", "X"]
    return "".join(axis if axis in "TZCYXS" else "Q" for axis in named)


def _spacing(data: Any) -> tuple[tuple[float, float, float], bool]:
    """Voxel size from the attribute that ImageJ writes."""
    sizes = np.asarray(data.attrs.get("element_size_um", ()), dtype=np.float64).ravel()
    if len(sizes) != 3 or not (sizes > 0).all():
        return (1.0, 1.0, 1.0), False
    z, y, x = sizes.tolist()
    return (z, y, x), True


FORMAT = ImageFormat(open_stack)
