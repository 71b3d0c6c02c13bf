"""Which device works, when the user leaves it open and when not."""

from __future__ import annotations

from ._arrays import gpu_names
from .errors import ResourceError, SettingsError

DEVICES = ("auto", "cpu", "gpu")
"""What may be asked for; `auto` takes a GPU that is there if there is enough to do."""


def refuse_unknown(device: str) -> None:
    """Refuse a name of no device.

    Raises
    ------
    SettingsError
        If this is none of them.
    """
    if device not in DEVICES:
        raise SettingsError(f"There is no device {device!r}. Choose one of: {', '.join(DEVICES)}.")


def device_for(asked: str, size: int, worth_a_gpu: int) -> str:
    """The device that will work: cpu or gpu.

    Parameters
    ----------
    asked : {"auto", "cpu", "gpu"}
        `auto` takes a GPU that is there if there is enough to do.
    size, worth_a_gpu : int
        How much there is to do, and how much is enough.

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
