"""Hypothesis strategies for points, tracks and assignment problems."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from outbid import AssignmentProblem, DenseCosts, Detections, SparseCosts, Tracks
from outbid.particles.tracks import LINK_MEASURES


@st.composite
def sparse_problems(draw: st.DrawFn, most: int = 8) -> AssignmentProblem:
    """Integer problems with optional rows and columns: empty, ties, zeros, everything unmatched."""
    rows, cols = draw(st.integers(0, most)), draw(st.integers(0, most))
    largest = draw(st.sampled_from([1, 3, 1000]))
    cost = st.integers(-largest, largest)
    values = draw(hnp.arrays(np.int64, (rows, cols), elements=cost))
    allowed = draw(hnp.arrays(bool, (rows, cols)))
    indptr = np.concatenate([[0], np.cumsum(allowed.sum(axis=1))]).astype(np.int64)
    costs = SparseCosts(indptr, np.nonzero(allowed)[1].astype(np.int32), values[allowed], (rows, cols))
    return AssignmentProblem(
        costs,
        draw(hnp.arrays(np.int64, rows, elements=cost)),
        draw(hnp.arrays(np.int64, cols, elements=cost)),
    )


@st.composite
def dense_problems(draw: st.DrawFn, most: int = 8) -> AssignmentProblem:
    """Perfect matchings of the smaller side, integer or real costs."""
    rows, cols = draw(st.integers(0, most)), draw(st.integers(0, most))
    elements = draw(
        st.sampled_from([st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, allow_subnormal=False)])
    )
    values = draw(hnp.arrays(np.float64, (rows, cols), elements=elements))
    if draw(st.booleans()):
        values = np.rint(values).astype(np.int64)
    return AssignmentProblem(DenseCosts(values))


def points(most: int = 30, ordinary: float = 4.0) -> st.SearchStrategy[np.ndarray]:
    """(N, 3) points: on a coarse grid, so that duplicates, ties and pairs exactly at a gate are common."""
    grid = st.integers(0, int(2 * ordinary)).map(lambda k: k / 2)
    # Rounded, for the squares of tiny numbers are 0 and two points then seem to be one.
    anywhere = st.floats(0, ordinary).map(lambda x: round(x, 9))
    return st.sampled_from([grid, anywhere]).flatmap(
        lambda elements: st.integers(0, most).flatmap(
            lambda count: hnp.arrays(np.float64, (count, 3), elements=elements)
        )
    )


@st.composite
def any_tracks(
    draw: st.DrawFn, most: int, features: dict[str, tuple], units: list[str], last: int = 6
) -> Tracks:
    """Tracks with gaps, divisions and merges, features of such types and values; links may have measures."""
    frames = st.integers(0, 5) | st.integers(0, last)
    count, number = draw(st.integers(0, most)), st.floats(allow_nan=False, allow_infinity=False)
    frame = np.sort(draw(hnp.arrays(np.int32, count, elements=frames)))
    position = draw(hnp.arrays(np.float64, (count, 3), elements=number))
    held = {name: draw(hnp.arrays(kind, count, elements=each)) for name, (kind, each) in features.items()}
    seen = Detections(frame, position, draw(st.sampled_from(units)), held)
    pairs = [(i, j) for i in range(count) for j in range(count) if frame[i] < frame[j]]
    links = np.array(sorted(draw(st.sets(st.sampled_from(pairs)))) if pairs else [], np.int64).reshape(-1, 2)
    measure = st.none() | hnp.arrays(np.float64, len(links), elements=number) if len(links) else st.none()
    return Tracks(seen, links, *(draw(measure) for _ in LINK_MEASURES))
