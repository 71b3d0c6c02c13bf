"""What is followed: sources of frames that become whole one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from numpy.typing import NDArray

from ..errors import InputError, OutbidError
from ..formats.images.frames import Images
from ..particles.detections import Detections


class NotYet(Exception):
    """A frame is not whole yet; it is tried again."""


class Source(Protocol):
    """Frames that arrive.

    Parameters
    ----------
    counts : bool
        Whether numbers are those of frames; else what they count is found in the first ones.
    ended : bool
        Whether the source knows that no more will come.
    """

    counts: bool
    ended: bool

    def poll(self, *, ended: bool = False) -> Sequence[int]:
        """Numbers of frames that have become whole since the last call; `ended`: nothing more is written."""

    def read(self, number: int) -> NDArray | Detections:
        """The image (Z, Y, X) of a frame, or its detections; raises `NotYet` if it is not whole."""

    def drop(self, number: int) -> None:
        """A frame that will not be read."""

    def movie(self) -> Images | None:
        """Metadata of the images, of which the first is there; None for detections."""


def read_of(movie: Images | None, number: int) -> NDArray:
    """The image of a frame of an opened movie; raises `NotYet` if it is not whole."""
    assert movie is not None
    try:
        return next(movie.frames([number]))
    except (OutbidError, OSError) as error:
        raise NotYet(str(error)) from None


def restarted(source: object, why: str) -> InputError:
    """The error about a camera whose frames begin again."""
    return InputError(
        f"{source}: {why}. The frames begin again, which is another movie: nothing more is followed. The "
        "tracks so far are kept. Record the new movie to a place of its own, and watch that."
    )
