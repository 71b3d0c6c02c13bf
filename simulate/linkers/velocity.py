"""Baseline linker that predicts a velocity: each particle is expected to repeat its last step.

Each frame pair is linked by an optimal assignment among the pairs within a gate. The cost of a pair is
the squared distance from the predicted position over the variance of the prediction, which is larger for
particles that have no previous step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from outbid.assignment.gains import best_pairs
from outbid.particles.detections import Detections

from .linker import NONE, Linker, Links, Settings, by_frame, grid_of, lengths, rows_and_partners

_END = np.dtype([
    ("row", np.int64), ("position", np.float64, 3), ("step", np.float64, 3), ("known", np.bool_),
    ("age", np.int64),
])  # fmt: skip
"""The last detection of a track: its row, position, step per frame, whether this is known, age in frames."""


class Velocity(Linker):
    """Linker by one-step velocity prediction, with variance-scaled costs and a sparse assignment."""

    def grid(self, *, gaps: bool) -> list[Settings]:
        return grid_of({
            "gate": lengths(0.8, 1.2, 1.6, 2.0, 2.5, 3.0), "memory": (0.0, 0.5, 0.7, 0.85, 1.0),
            "certainty": (1.0, 0.7), "max_gap": (0, 1, 2) if gaps else (0,),
        })  # fmt: skip

    def defaults(self, *, gaps: bool) -> Settings:
        return {"gate": lengths(1.5)[0], "memory": 1.0, "certainty": 0.7, "max_gap": 2 if gaps else 0}

    def link(self, detections: Detections, settings: Settings, unit: float) -> Links:
        gate, memory = float(settings["gate"]) * unit, float(settings["memory"])
        spread = np.array([1.0, float(settings["certainty"]) if memory else 1.0])
        most_age = int(settings["max_gap"]) + 1
        found, first, ends = [NONE], 0, _started(0, np.empty((0, 3)))
        for seen in by_frame(detections):
            expected = ends["position"] + memory * ends["age"][:, None] * ends["step"]
            deviation = gate * spread[ends["known"].astype(int)] * np.sqrt(ends["age"])
            left, right = _pairs(expected, seen, deviation)
            found.append(np.column_stack([ends["row"][left], first + right]))
            here = _started(first, seen)
            here["step"][right] = (seen[right] - ends["position"][left]) / ends["age"][left, None]
            here["known"][right] = True
            lost = np.delete(ends, left)
            lost = lost[lost["age"] < most_age]
            lost["age"] += 1
            ends = np.concatenate([here, lost])
            first += len(seen)
        links = np.concatenate(found)
        return links[np.lexsort((links[:, 1], links[:, 0]))]


def _started(first: int, seen: NDArray[np.float64]) -> NDArray[np.void]:
    here = np.zeros(len(seen), dtype=_END)
    here["row"], here["position"], here["age"] = first + np.arange(len(seen)), seen, 1
    return here


def _pairs(
    expected: NDArray[np.float64], seen: NDArray[np.float64], deviation: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the pairs that are linked; the cost is squared distance over deviation², 1 at the gate."""
    if not (len(expected) and len(seen)):
        return NONE[:, 0], NONE[:, 1]
    near = cKDTree(expected).sparse_distance_matrix(
        cKDTree(seen), float(deviation.max()), output_type="coo_matrix"
    )
    cost = (near.data / deviation[near.row]) ** 2
    kept = cost < 1
    gain = csr_array((1 - cost[kept], (near.row[kept], near.col[kept])), near.shape)
    gain.sort_indices()
    answer, _ = best_pairs(gain.indptr.astype(np.int64), gain.indices, gain.data, gain.shape)
    return rows_and_partners(answer.col_of_row)


LINKERS = {"velocity": Velocity()}
