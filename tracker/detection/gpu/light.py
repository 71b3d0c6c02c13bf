"""Frames on the GPU in grey values and in units of the camera's noise, and the light of spots in them."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import cupy_module, to_device, to_host
from ...compute.cuda import cuda_function, launch
from ..prepare import SAMPLED, prepared
from ..stabilise import _HOT, STANDS_OUT

SOURCE = "detection/gpu/light.cu"


def uploaded(images, model, settings):
    """Prepared grey values (B, Z, Y, X) f4 of images of one shape and type; see `prepare.prepared`."""
    xp, kind = cupy_module(), images[0].dtype
    if kind.kind in "bf" or kind.itemsize > 2:
        made = [prepared(image, settings, model.middle, model.unit) for image in images]
        return to_device(np.stack(made))
    out = xp.empty((len(images), *images[0].shape), np.float32)
    for each, image in zip(out, images, strict=True):
        each[:] = to_device(np.ascontiguousarray(image, dtype=kind.newbyteorder("=")))
    out -= np.float32(model.middle)
    out /= np.float32(model.unit)
    return xp.negative(out, out=out) if settings.dark else out


def faulty(voxels, noise):
    """(B,) bool on the host: in which frames some voxel may not be measured, or is saturated."""
    xp = cupy_module()
    flat = voxels.reshape(len(voxels), -1)
    low, high = voxels.min(axis=(2, 3)), voxels.max(axis=(2, 3))
    mean = flat[:, :: max(1, flat.shape[1] // SAMPLED)].mean(axis=1)
    flag = (low == high).any(axis=1).astype(np.int32)
    launch(
        cuda_function(SOURCE, "find_faults"),
        voxels.size,
        (voxels, low.min(axis=1), xp.ascontiguousarray(mean, dtype=np.float32), *map(np.int32, voxels.shape),
         *map(np.float64, (*noise.line, noise.saturation, _HOT, STANDS_OUT)), flag),
    )  # fmt: skip
    return to_host(flag) > 0


def stabilised(voxels, noise):
    """In units of the noise."""
    return _each("stabilise", voxels, noise)


def grey(values, noise):
    """The inverse."""
    return _each("unstabilise", values, noise)


def _each(name, values, noise):
    out = cupy_module().empty_like(values)
    launch(
        cuda_function(SOURCE, name),
        values.size,
        (values, np.int64(values.size), *map(np.float64, noise.line), out),
    )
    return out


def spot_rows(background, rows, height, noise, lowest=-np.inf):
    """(n, 7) f8: spots of the common width that stand out of a background by these heights."""
    out = cupy_module().empty((len(rows), 7))
    launch(
        cuda_function(SOURCE, "spot_rows"),
        len(rows),
        (background, rows.position, height, rows.frame, np.int32(len(rows)),
         *map(np.int32, background.shape[1:]), *map(np.float64, (*noise.line, lowest)), out),
    )  # fmt: skip
    return out


def taken_out(values, background, which, spots, used, start, sigma, reach, noise):
    """Frames `which` of values without what spots, or the `used` ones, add to a background."""
    out = cupy_module().empty((len(which), *values.shape[1:]), np.float32)
    cuda_function(SOURCE, "take_out")(
        (_patches(values.shape[1:]), len(which)),
        (256,),
        (values, background, which, spots, _mask(used, spots), start, sigma, np.float64(reach),
         *map(np.int32, values.shape[1:]), *map(np.float64, noise.line), out),
    )  # fmt: skip
    return out


def with_spots(light, spots, used, start, sigma, reach, noise, *, stable):
    """Grey values with the light of spots added; if `stable`, taken away, in units of the noise."""
    out = cupy_module().empty_like(light)
    cuda_function(SOURCE, "with_spots")(
        (_patches(light.shape[1:]), len(light)),
        (256,),
        (light, spots, _mask(used, spots), start, sigma, np.float64(reach), *map(np.int32, light.shape[1:]),
         *map(np.float64, noise.line), np.int32(stable), out),
    )  # fmt: skip
    return out


def _mask(used, spots):
    return cupy_module().ones(len(spots), bool) if used is None else used


def _patches(shape):
    """Blocks of `patch_of` in draw.cuh."""
    high, side = (1, 16) if shape[0] == 1 else (4, 8)
    return -(-shape[0] // high) * -(-shape[1] // side) * -(-shape[2] // side)
