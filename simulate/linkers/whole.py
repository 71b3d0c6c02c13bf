"""The matching of Vasconcelos & Rosenhahn: least total distance between two frames, all pairs allowed.

All detections of the smaller frame are matched, at any distance. The result is that of their auction, which
is optimal up to its epsilon; it is computed by the solver for such problems.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from outbid.assignment import AssignmentProblem, PointCosts, assign
from outbid.detections import Detections

from .linker import NONE, Linker, Settings


class Whole(Linker):
    """One assignment of all detections for each pair of frames."""

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        del settings, unit
        found = [NONE]
        for (a, b), (_, c) in pairwise(pairwise(detections.frame_start)):
            if a < b < c:
                problem = AssignmentProblem(PointCosts(detections.position[a:b], detections.position[b:c]))
                partner = assign(problem, "sparsified").col_of_row
                source = np.nonzero(partner >= 0)[0]
                found.append(np.column_stack([a + source, b + partner[source]]).astype(np.int64))
        return np.concatenate(found)


LINKER = Whole()
