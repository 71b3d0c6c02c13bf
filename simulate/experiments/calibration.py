"""Self-calibration: quantities learned from the detections alone, against those that were simulated."""

from __future__ import annotations

import time
from itertools import product
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from outbid.learned.summary import Summary
from outbid.particles.tracks import Tracks
from outbid.scoring import score
from outbid.tracking import TrackingSettings, track

from ..experiment import Curve, Experiment, Panel, Row, Size, Trial, grouped
from ..scenes import Scene

_KAPPAS, _PERSISTENCES, _SHARES = (0.1, 0.2, 0.3, 0.4), (0.0, 3.0, 10.0), (0.0, 0.1)
_BINS = 20
_DOUBTFUL = 0.05
"""Share of the links that are counted as the least certain ones."""


class SelfCalibration(Experiment):
    """Errors of learned quantities are relative: 0.1 is 10 % too large."""

    shows = "Learned against simulated quantities: step, persistence, noise, gate, confidence."
    takes = "some 2 minutes; seconds with --quick, which takes two cells"
    size = Size(seeds=5, frames=50, particles=2000)
    quick = Size(seeds=2, frames=15, particles=300)
    cell = ("kappa", "persistence", "miss", "clutter")

    def trials(self, size: Size) -> list[Trial]:
        scenes = (
            Scene(kappa, persistence, share, share, particles=size.particles, frames=size.frames)
            for share, persistence, kappa in product(_SHARES, _PERSISTENCES, _KAPPAS)
        )
        return [Trial(scene, tuple(range(size.seeds))) for scene in scenes]

    def quicker(self, trials: list[Trial]) -> list[Trial]:
        two = ((0.1, 0.0, 0.0), (0.2, 3.0, 0.1))
        return [t for t in trials if (t.scene.kappa, t.scene.persistence, t.scene.miss) in two]

    def measure(self, trial: Trial) -> list[Row]:
        return [trial.cell(self.cell) | self._row(trial.scene, seed) for seed in trial.seeds]

    def _row(self, scene: Scene, seed: int) -> Row:
        film = scene.film(seed)
        start = time.process_time()
        run = track(film.detections, TrackingSettings(device="cpu"), workers=1)
        seconds = time.process_time() - start
        assert run.learned is not None
        values = score(run.tracks, film, families=("links", "identity"), link_rule="edge").values
        row: Row = {"seed": seed, "link_f1": values["link_f1"], "idf1": values["idf1"]}
        row |= learned_against(run.learned, scene, film) | confidence(run.tracks, film)
        return row | {"sweeps": run.learned.sweeps, "seconds": round(seconds, 3)}

    def panels(self, summary: list[Row], size: Size) -> list[Panel]:
        del size
        drawn = {
            "step_error": "error of the step", "persistence_error": "error of the persistence",
            "noise_error": "error of the noise", "lost_by_gate": "true links outside the gate",
            "ece": "expected calibration error",
            "wrong_caught": f"wrong links among the least certain {_DOUBTFUL:.0%}",
        }  # fmt: skip
        return [Panel("", "kappa", label, _by_kappa(summary, name)) for name, label in drawn.items()]


def learned_against(learned: Summary, scene: Scene, film: Tracks) -> Row:
    """Relative errors of learned quantities, and the share of true links of one frame outside the gate.

    `persistence_links` is the persistence measured from the true links. Walls reverse particles, so it is
    less than the simulated one.
    """
    unit, persistence = scene.length_unit, learned.persistence_frames
    step = sqrt(scene.kappa**2 + 2 * scene.noise**2) * unit
    noise = float(np.mean(learned.noise))
    source, target = film.links.T
    next_frame = film.detections.frame[target] == film.detections.frame[source] + 1
    steps = (film.detections.position[target] - film.detections.position[source])[next_frame]
    outside = (np.square(steps / learned.gate).sum(axis=1) > 1).mean()
    return {
        "step_error": float(np.mean(learned.step)) / step - 1,
        "persistence_learned": persistence,
        "persistence_links": persistence_of(film),
        "persistence_error": persistence / scene.persistence - 1 if scene.persistence else np.nan,
        "noise_error": noise / (scene.noise * unit) - 1 if scene.noise else np.nan,
        "lost_by_gate": float(outside),
    }


def persistence_of(film: Tracks) -> float:
    """Persistence of true tracks in frames, from the covariances of steps two to five frames apart.

    Localisation noise does not contribute to these covariances. The persistence is 0 if steps are hardly
    correlated.
    """
    position, frame = film.detections.position, film.detections.frame
    follower = np.full(len(position), -1)
    source, target = film.links.T
    near = frame[target] == frame[source] + 1
    follower[source[near]] = target[near]
    step = np.where((follower >= 0)[:, None], position[follower] - position, np.nan)
    covariance, later = [], follower
    for _ in range(5):
        product = (step * step[later])[(follower >= 0) & (later >= 0) & (follower[later] >= 0)]
        covariance.append(float(product.mean()) if len(product) else 0.0)
        later = np.where(later >= 0, follower[later], -1)
    known = np.array(covariance[1:])
    if (known <= 0).any() or known[0] < 0.02 * float(np.nanmean(step * step)):
        return 0.0
    slope = np.polyfit(np.arange(len(known)), np.log(known), 1)[0]
    return float(-1 / slope) if slope < 0 else np.inf


def confidence(tracks: Tracks, film: Tracks) -> Row:
    """Expected calibration error of the links' probabilities, and wrong links among the least certain ones.

    `wrong` is the share of wrong links. `wrong_caught` is the share of the wrong links that are among the
    least certain 5 % of all links. `wrong_predicted` is the same share computed from the probabilities alone,
    that is, the expected `wrong_caught` if the probabilities are right. `wrong_catchable` is the largest
    share that 5 % of all links can contain.

    Examples
    --------
    >>> film = Scene(0.3, particles=60, frames=6).film(0)
    >>> sure = Tracks(film.detections, film.links, link_probability=np.full(len(film.links), 0.9))
    >>> round(confidence(sure, film)["ece"], 3)  # all are right, with a probability of .9
    0.1
    """
    size = len(film.detections)
    right = np.isin(tracks.links @ [size, 1], film.links @ [size, 1])
    probability = tracks.link_probability
    if probability is None or len(right) == 0:
        names = ("ece", "wrong", "wrong_caught", "wrong_predicted", "wrong_catchable")
        return dict.fromkeys(names, np.nan)
    order = np.argsort(probability, kind="stable")
    doubtful = order[: int(np.ceil(_DOUBTFUL * len(order)))]
    wrong, doubt = int((~right).sum()), 1 - probability
    return {
        "ece": expected_calibration_error(probability, right),
        "wrong": wrong / len(right),
        "wrong_caught": float((~right[doubtful]).sum()) / wrong if wrong else np.nan,
        "wrong_predicted": float(doubt[doubtful].sum() / doubt.sum()) if doubt.any() else np.nan,
        "wrong_catchable": min(len(doubtful) / wrong, 1.0) if wrong else np.nan,
    }


def expected_calibration_error(probability: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Mean over links of the difference between mean probability and share of right links in their bins.

    Examples
    --------
    >>> half = np.array([True, False])
    >>> expected_calibration_error(np.array([0.5, 0.5]), half), expected_calibration_error(np.ones(2), half)
    (0.0, 0.5)
    """
    which = np.minimum((probability * _BINS).astype(int), _BINS - 1)
    said = np.bincount(which, probability, _BINS)
    were = np.bincount(which, right, _BINS)
    return float(np.abs(said - were).sum() / len(right))


def _by_kappa(summary: list[Row], name: str) -> list[Curve]:
    """Curves of one score over kappa, one for each persistence and each share of misses and clutter."""
    known = [row for row in summary if not np.isnan(float(row[name]))]
    return [
        Curve.of(
            f"persistence {float(persistence):g}, misses and clutter {float(share):.0%}", rows, "kappa", name
        )
        for (persistence, share), rows in grouped(known, ("persistence", "miss")).items()
    ]


EXPERIMENTS = {"calibration": SelfCalibration()}
