"""Choose the device that computes: CPU or GPU."""

from __future__ import annotations

from ..compute.arrays import gpu_names
from ..errors import ResourceError


def device_for(asked: str, size: int, worth_a_gpu: int) -> str:
    """The device to use: cpu or gpu.

    Parameters
    ----------
    asked : {"auto", "cpu", "gpu"}
        `auto` takes a GPU if there is one and `size` is at least `worth_a_gpu`.
    size, worth_a_gpu : int
        Size of the problem, and the size from which on a GPU is faster, in the same unit.

    Raises
    ------
    ResourceError
        If the GPU is asked for and there is none.

    Examples
    --------
    >>> device_for("auto", 10, worth_a_gpu=1000)
    'cpu'
    """
    if asked == "cpu" or (asked == "auto" and size < worth_a_gpu):
        return "cpu"
    try:
        gpu_names()
    except RuntimeError as reason:
        if asked == "gpu":
            raise ResourceError(
                f"There is no GPU to work on: {reason} Or use --device auto or cpu."
            ) from None
        return "cpu"
    return "gpu"
