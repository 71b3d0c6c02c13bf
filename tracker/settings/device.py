"""Choose the device that computes: CPU or GPU."""

from __future__ import annotations

from ..compute.arrays import gpu_names
from ..errors import ResourceError

GPU_FROM_DETECTIONS = 3_000_000
"""Number of detections from which `auto` links with a gate on a GPU.

Loading CuPy takes 0.7 s. From the shell, Parquet in and out, an H200 and 16 cores took 2.9 s and 2.0 s for a
million detections with 15 candidates each, 3.0 s and 2.8 s for three million; with few cores it pays sooner.
"""
GPU_FROM_DETECTIONS_LEARNED = 500_000
"""Number of detections from which `auto` learns on a GPU: for this number, 16 cores take 7.0 s, and an H100
2.8 s plus one second for its start."""

GPU_FROM_VOXELS = 200_000_000
"""Number of voxels of a movie from which `auto` detects on a GPU.

Loading CuPy and the kernels takes 3 s, and 40 s at their first use. 200 million voxels then take an H200 1 s,
and 16 cores 11 s.
"""


def device_for(asked: str, size: int, gpu_from: int) -> str:
    """The device to use: cpu or gpu.

    Parameters
    ----------
    asked : {"auto", "cpu", "gpu"}
        `auto` uses a GPU if there is one and `size` is at least `gpu_from`.
    size, gpu_from : int
        Size of the problem, and the size from which a GPU is faster, in the same unit.

    Raises
    ------
    ResourceError
        If a GPU is requested and the machine has no GPU.

    Examples
    --------
    >>> device_for("auto", 10, gpu_from=1000)
    'cpu'
    """
    if asked == "cpu" or (asked == "auto" and size < gpu_from):
        return "cpu"
    try:
        gpu_names()
    except RuntimeError as reason:
        if asked == "gpu":
            raise ResourceError(f"No GPU can be used: {reason} Or use --device auto or cpu.") from None
        return "cpu"
    return "gpu"
