"""btrack (Ulicna et al. 2021): Kalman filters and Bayesian belief updates."""

from __future__ import annotations

import numpy as np

from outbid.particles.detections import Detections

from .linker import PIXELS, Linker, Links, Settings, grid_of, lengths, links_of, silence


class BTrack(Linker):
    """btrack's tracking without its global optimisation, at its values for particles, moving or not."""

    package = "btrack"
    usual = Settings(
        process=15 / PIXELS, measurement=5 / PIXELS, first=150 / PIXELS, moves=0, not_assigned=0.001,
        max_lost=5, radius=100 / PIXELS,
    )  # fmt: skip

    def missing(self) -> str | None:
        try:
            with silence():
                self.link(Detections.from_table([0, 1], np.eye(2, 3)), self.usual or {}, 1.0)
        except Exception as error:  # a wheel for other machines may raise anything
            why = f"its engine cannot be loaded here ({error.__cause__ or error})"
            return super().missing() or f"btrack left out: {why}."
        return None

    def grid(self, *, gaps: bool) -> list[Settings]:
        return grid_of({
            "process": lengths(0.1, 1.5), "measurement": lengths(0.5), "first": lengths(4.0, 15.0),
            "moves": (0, 1), "not_assigned": (0.001, 0.1), "max_lost": (1, 3) if gaps else (1,),
            "radius": lengths(3.0),
        })  # fmt: skip

    def link(self, detections: Detections, settings: Settings, unit: float) -> Links:
        import btrack

        length = {name: float(value) * PIXELS for name, value in settings.items()}
        model = btrack.models.MotionModel(  # position and velocity along x, y, z; its engine works in pixels
            measurements=3, states=6, H=np.eye(3, 6), prob_not_assign=float(settings["not_assigned"]),
            A=np.eye(6) + float(settings["moves"]) * np.eye(6, k=3), R=length["measurement"] * np.eye(3),
            P=length["first"] * np.diag([0.1, 0.1, 0.1, 1, 1, 1]), accuracy=7.5,
            G=length["process"] * np.array([[0.5, 0.5, 0.5, 1, 1, 1]]), max_lost=int(settings["max_lost"]),
        )  # fmt: skip
        place = dict(zip("xyz", detections.position.T[::-1] * (PIXELS / unit), strict=True))
        table = place | {"ID": np.arange(len(detections)), "t": detections.frame.astype(np.int64)}
        with btrack.BayesianTracker(verbose=False) as tracker:
            tracker.configure({
                "motion_model": model, "max_search_radius": length["radius"],
                "update_method": btrack.constants.BayesianUpdates.APPROXIMATE,
                "volume": tuple((float(axis.min()), float(axis.max())) for axis in place.values()),
            })  # fmt: skip
            tracker.append(btrack.io.objects_from_dict(table))
            tracker.track(step_size=len(detections.frame_start))
            return links_of(detections, tracker.refs)


LINKERS = {"btrack": BTrack()}
