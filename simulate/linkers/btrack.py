"""btrack (Ulicna et al. 2021): Kalman filters and Bayesian belief updates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outbid.detections import Detections

from .linker import PIXELS, Linker, Settings, grid_of, lengths, links_of_labels, silence


class BTrack(Linker):
    """Linker by btrack's tracking, without its second, global optimisation step.

    The default settings of this linker are btrack's values for particles. Settings: standard deviations
    of process, measurement and initial state (``first``), and whether the filter has a velocity
    (``moves`` = 1).
    """

    packages = ("btrack",)

    def missing(self) -> str | None:
        sentence = super().missing()
        if sentence is None:
            try:
                with silence():
                    _started()
            except Exception as error:  # a wheel for other machines may raise anything
                reason = error.__cause__ or error
                sentence = f"btrack left out: its engine cannot be loaded here ({reason})."
        return sentence

    def grid(self, *, gaps: bool) -> list[Settings]:
        return grid_of(
            {
                "process": lengths(0.1, 1.5),
                "measurement": lengths(0.5),
                "first": lengths(4.0, 15.0),
                "moves": (0, 1),
                "not_assigned": (0.001, 0.1),
                "max_lost": (1, 3) if gaps else (1,),
                "radius": lengths(3.0),
            }
        )

    def defaults(self, *, gaps: bool) -> Settings:
        del gaps
        return {
            "process": 15 / PIXELS, "measurement": 5 / PIXELS, "first": 150 / PIXELS, "moves": 0,
            "not_assigned": 0.001, "max_lost": 5, "radius": 100 / PIXELS,
        }  # fmt: skip

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        import btrack
        from btrack.constants import BayesianUpdates

        # Its engine works in pixels: a probability is that of a cube of 7.5 pixels.
        position = detections.position * (PIXELS / unit)
        table = {
            "ID": np.arange(len(detections)), "t": detections.frame.astype(np.int64),
            "x": position[:, 2], "y": position[:, 1], "z": position[:, 0],
        }  # fmt: skip
        low, high = position.min(axis=0), position.max(axis=0)
        with btrack.BayesianTracker(verbose=False) as tracker:
            tracker.configure(
                {
                    "motion_model": _motion(settings),
                    "update_method": BayesianUpdates.APPROXIMATE,
                    "max_search_radius": float(settings["radius"]) * PIXELS,
                    "volume": tuple((float(low[axis]), float(high[axis])) for axis in (2, 1, 0)),
                }
            )
            tracker.append(btrack.io.objects_from_dict(table))
            tracker.track(step_size=len(detections.frame_start))
            tracks = tracker.refs
        label = np.full(len(detections), -1, dtype=np.int64)
        for number, rows in enumerate(tracks):
            label[[row for row in rows if row >= 0]] = number
        return links_of_labels(detections, label)


def _started() -> None:
    """Load the engine of btrack."""
    import btrack

    with btrack.BayesianTracker(verbose=False):
        pass


def _motion(settings: Settings) -> object:
    """The motion model: position and velocity along x, y, z."""
    from btrack.models import MotionModel

    moves = np.eye(6) + np.diag(np.full(3, float(settings["moves"])), 3)
    first = float(settings["first"]) * PIXELS * np.diag([0.1, 0.1, 0.1, 1, 1, 1])
    return MotionModel(
        measurements=3,
        states=6,
        A=moves,
        H=np.eye(3, 6),
        P=first,
        G=float(settings["process"]) * PIXELS * np.array([[0.5, 0.5, 0.5, 1, 1, 1]]),
        R=float(settings["measurement"]) * PIXELS * np.eye(3),
        accuracy=7.5,
        max_lost=int(settings["max_lost"]),
        prob_not_assign=float(settings["not_assigned"]),
    )


LINKER = BTrack()
