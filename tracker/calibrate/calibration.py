"""The model that calibration learned from a movie, as text and as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..refine.linking import LinkModel
from ..refine.movie import HOLE


@dataclass(frozen=True, eq=False)
class Calibration:
    """The model that was learned from a movie, in units of position x spacing and frames.

    Parameters
    ----------
    model : LinkModel
    crowd : int or None
        Number of neighbours that predict the step of a particle; 0 means the whole frame, None no prediction.
    step : (axes,) float64 array
        Root mean square displacement per frame along each axis, as observed.
    uncertainty : dict of str to float
        Standard errors of step, persistence, noise, end and start, as far as these were learned. A
        persistence at the upper end of the search range has none.
    passes : int
        Number of times that the movie was linked, or of sweeps of the posterior.
    axes : str
        The axes (of z, y, x) to which the values refer; axes without variation are omitted.
    interval : int
        Difference between the numbers of consecutive frames. If it is not 1, all values per frame refer to
        this interval.
    drift : (F, axes) float64 array or None
        Offset of each frame relative to the first one, if whole frames drift; steps and gates exclude it. F
        is the length of `time`, or else the number of intervals from the first frame to the last.
    known : tuple of str
        Names of the values that were fixed, not learned.
    pace : (F,) float64 array or None
        Step scale: root mean square step from each frame to the next relative to that of all frames, if it
        varies.
    time : (F,) int64 array or None
        Time of each frame in intervals, if some frames in between were apparently not recorded (none of many
        particles has a detection in them); consecutive numbers if frames are unevenly spaced. Includes the
        frames with detections and up to 50 consecutive empty ones.
    engine : {"passes", "posterior"}
        What answered: see `outbid.learned`.
    """

    model: LinkModel
    crowd: int | None
    step: NDArray[np.float64]
    uncertainty: dict[str, float]
    passes: int
    axes: str
    interval: int = 1
    drift: NDArray[np.float64] | None = None
    known: tuple[str, ...] = ()
    pace: NDArray[np.float64] | None = None
    time: NDArray[np.int64] | None = None
    engine: str = "passes"

    def __str__(self) -> str:
        motion, model, error = self.model.motion, self.model, self.uncertainty
        axes = self.axes
        remembered = (
            f"velocity {_each(motion.speed, axes)}, persistence {motion.persistence:.3g}"
            f"{_within(error, 'persistence', ' ± {:.1g}')} frames"
            if motion.persistence > 0 and any(motion.speed)
            else "no persistent velocity"
        )
        flow = {None: "not used", 0: "mean step of the whole frame"}
        said = "" if self.interval == 1 else f"Frame numbers increase by {self.interval}. "
        if self.time is not None:
            said += self._recorded(np.diff(self.time))
        if self.drift is not None:
            farthest = float(np.linalg.norm(np.diff(self.drift, axis=0), axis=1).max(initial=0.0))
            said += f"Whole frames drift by up to {farthest:.3g}; this is corrected. "
        if self.pace is not None:
            said += f"Steps differ from frame to frame by {self.pace[:-1].std():.0%}. "
        turns = "passes" if self.engine == "passes" else "sweeps of the posterior"
        told = f"\nFixed, not learned: {', '.join(self.known)}." if self.known else ""
        return (
            f"Learned in {self.passes} {turns}. {said}"
            f"Step per frame: {_each(self.step, axes)}{_within(error, 'step')}; {remembered}. "
            f"Neighbour flow: {flow.get(self.crowd, f'mean step of {self.crowd} neighbours')}.\n"
            f"Localisation noise: {_each(motion.noise, axes)}{_within(error, 'noise')}. "
            f"Gate: {_each(model.gate, axes)}.\n"
            f"Per detection, {model.end:.2%}{_within(error, 'end', ' (± {:.2%})')} of tracks end and "
            f"{model.start:.2%}{_within(error, 'start', ' (± {:.2%})')} start; "
            f"{model.clutter:.2%} of detections are clutter. Next detection after 1, 2, … frames: "
            f"{', '.join(f'{share:.2%}' for share in model.follow)}.{told}"
        )

    @staticmethod
    def _recorded(ahead: NDArray[np.int64]) -> str:
        """Sentence about the frames missing between those recorded."""
        if (ahead == 1).all():
            return "Frames are unevenly spaced in time and are linked in sequence. "
        lost = int((ahead - 1)[ahead <= HOLE + 1].sum())
        return f"Frames without detections, taken as not recorded: {lost}. "

    def as_dict(self) -> dict[str, object]:
        """Plain values, for run records and summaries."""
        motion = self.model.motion
        return {
            "step": self.step.tolist(),
            "gate": list(self.model.gate),
            "diffusion": list(motion.diffusion),
            "speed": list(motion.speed),
            "persistence": motion.persistence,
            "noise": list(motion.noise),
            "follow": list(self.model.follow),
            "end": self.model.end,
            "start": self.model.start,
            "clutter": self.model.clutter,
            "freedom": self.model.freedom,
            "scale": self.model.scale,
            "crowd": self.crowd,
            "uncertainty": dict(self.uncertainty),
            "engine": self.engine,
            "passes": self.passes,
            "axes": self.axes,
            "interval": self.interval,
            "drift": None if self.drift is None else self.drift.tolist(),
            "known": list(self.known),
            "step_scale": None if self.pace is None else self.pace.tolist(),
            "time": None if self.time is None else self.time.tolist(),
        }


def _within(error: dict[str, float], name: str, form: str = " (± {:.1g})") -> str:
    """The standard error as text, if known."""
    return form.format(error[name]) if name in error else ""


def _each(values: Iterable[float], axes: str) -> str:
    """Text with one value for each axis."""
    return ", ".join(f"{axis} {value:.3g}" for axis, value in zip(axes, values, strict=True))
