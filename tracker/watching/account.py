"""How a movie is watched, and what happened meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class How:
    """How a movie is watched; none of it changes the tracks of the last pass.

    Parameters
    ----------
    idle : float
        Seconds without a new frame after which the recording counts as ended.
    wait : float
        Seconds that a frame is waited for which others have overtaken.
    poll : float
        Seconds from look to look.
    learn : int
        Frames from which motion is learned.
    until : int or None
        The recording ends with the frame of this number.
    stop_file : Path or None
        The recording ends when this file appears. Default: the output's name, and ``.stop``.
    keep : bool
        Whether the tracks as they were linked live stay, beside the output.
    workers : int
        Threads.
    """

    idle: float = 60.0
    wait: float = 5.0
    poll: float = 0.1
    learn: int = 20
    until: int | None = None
    stop_file: Path | None = None
    keep: bool = False
    workers: int = 2

    def stop_of(self, output: Path) -> Path:
        """The file that ends the recording."""
        return self.stop_file or output.with_name(f"{output.name}.stop")


@dataclass
class Account:
    """What happened while a movie was watched.

    Parameters
    ----------
    frames : int
        Frames that were linked.
    behind : int
        Most frames that were there and not yet linked.
    seconds : list of float
        From when a frame was whole to when its tracks and events were out, of the latest thousand frames that
        came after a model was learned.
    ended : str
        Why the recording counts as ended.
    learned : float
        When the first frames were linked.
    """

    frames: int = 0
    behind: int = 0
    seconds: list[float] = field(default_factory=list)
    ended: str = ""
    learned: float = math.inf

    def took(self, came: float, now: float, *, is_linked: bool) -> None:
        """A frame that came at a time is done; whether it was linked."""
        self.frames += 1
        self.seconds = [*self.seconds[-999:], *([now - came] if came > self.learned else [])]
        self.learned = min(self.learned, now) if is_linked else self.learned

    def as_dict(self) -> dict[str, Any]:
        """Plain values, with median and 99th percentile of the latency in seconds."""
        share = np.percentile(self.seconds, [50, 99]).round(4).tolist() if self.seconds else [None, None]
        return {
            "frames": self.frames, "most_behind": self.behind, "latency_median": share[0],
            "latency_99": share[1], "ended": self.ended,
        }  # fmt: skip
