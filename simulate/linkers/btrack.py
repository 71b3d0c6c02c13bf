"""btrack (Ulicna et al. 2021): Kalman filters and Bayesian belief updates."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from outbid.detections import Detections

from .linker import PIXELS, Linker, Settings, grid_of, lengths, links_of_labels, silence


class BTrack(Linker):
    """btrack's tracking without its global optimisation, at its values for particles, moving or not."""

    packages = ("btrack",)
    usual: ClassVar[Settings | None] = {
        "process": 15 / PIXELS, "measurement": 5 / PIXELS, "first": 150 / PIXELS, "moves": 0,
        "not_assigned": 0.001, "max_lost": 5, "radius": 100 / PIXELS,
    }  # fmt: skip

    def missing(self) -> str | None:
        sentence = super().missing()
        try:
            if sentence is None:
                with silence():
                    self.link(Detections.from_table([0, 1], np.eye(2, 3)), self.usual or {}, 1.0)
            return sentence
        except Exception as error:  # a wheel for other machines may raise anything
            return f"btrack left out: its engine cannot be loaded here ({error.__cause__ or error})."

    def grid(self, *, gaps: bool) -> list[Settings]:
        return grid_of({
            "process": lengths(0.1, 1.5), "measurement": lengths(0.5), "first": lengths(4.0, 15.0),
            "moves": (0, 1), "not_assigned": (0.001, 0.1), "max_lost": (1, 3) if gaps else (1,),
            "radius": lengths(3.0),
        })  # fmt: skip

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        import btrack

        length = {name: float(value) * PIXELS for name, value in settings.items()}
        model = btrack.models.MotionModel(  # position and velocity along x, y, z; its engine works in pixels
            measurements=3, states=6, H=np.eye(3, 6),
            A=np.eye(6) + np.diag(np.full(3, float(settings["moves"])), 3),
            P=length["first"] * np.diag([0.1, 0.1, 0.1, 1, 1, 1]), R=length["measurement"] * np.eye(3),
            G=length["process"] * np.array([[0.5, 0.5, 0.5, 1, 1, 1]]), accuracy=7.5,
            max_lost=int(settings["max_lost"]), prob_not_assign=float(settings["not_assigned"]),
        )  # fmt: skip
        place = dict(zip("xyz", detections.position.T[::-1] * (PIXELS / unit), strict=True))
        label = np.full(len(detections), -1)
        table = place | {"ID": np.arange(len(label)), "t": detections.frame.astype(np.int64)}
        with btrack.BayesianTracker(verbose=False) as tracker:
            tracker.configure({
                "motion_model": model, "max_search_radius": length["radius"],
                "update_method": btrack.constants.BayesianUpdates.APPROXIMATE,
                "volume": tuple((float(axis.min()), float(axis.max())) for axis in place.values()),
            })  # fmt: skip
            tracker.append(btrack.io.objects_from_dict(table))
            tracker.track(step_size=len(detections.frame_start))
            for number, rows in enumerate(tracker.refs):
                label[[row for row in rows if row >= 0]] = number
        return links_of_labels(detections, label)


LINKERS = {"btrack": BTrack()}
