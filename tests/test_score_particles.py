"""The ISBI 2012 scores: the organisers' own results, a naive reading of the definition, and theorems."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import SCENES
from scipy.optimize import linear_sum_assignment

from outbid import Detections, Tracks, score

NAN = float("nan")
KEYS = ("alpha", "beta", "jsc", "jsc_theta", "rmse")

Path = dict[int, tuple[float, float, float]]
"""Position z, y, x of a particle by frame."""


def line(particle: int, first: int = 0, last: int = 9, z: float = 0.0) -> Path:
    """One of two particles 20 px apart that move by 1 px a frame along x, in frames first to last."""
    return {t: (z, 20.0 * particle, float(t)) for t in range(first, last + 1)}


def tracks_from(paths: list[Path]) -> Tracks:
    rows = [(t, k, *path[t]) for k, path in enumerate(paths) for t in path]
    rows.sort()
    table = np.array(rows, dtype=float).reshape(-1, 5)
    return Tracks.from_track_ids(Detections.from_table(table[:, 0], table[:, 2:]), table[:, 1].astype(int))


def particle_values(candidates: list[Path], references: list[Path], gate: float = 5.0) -> list[float]:
    found = score(tracks_from(candidates), tracks_from(references), gate=gate, families=["particles"])
    return [found.values[key] for key in KEYS]


GOLDEN = {
    "identical": ([line(0), line(1)], 1, 1, 1, 1, 0),
    "all candidates 3 px off in z": ([line(0, z=3), line(1, z=3)], 0.4, 0.4, 1, 1, 3),
    "all exactly 5.0 px off": ([line(0, z=5), line(1, z=5)], 0, 0, 0, 0, NAN),
    "one of two tracks missing": ([line(0)], 0.5, 0.5, 0.5, 0.5, 0),
    "plus one spurious 5-frame track": ([line(0), line(1), line(5, 0, 4)], 1, 0.8, 0.8, 2 / 3, 0),
    "track 1 split between t=4 and 5": ([line(0, 0, 4), line(0, 5, 9), line(1)], 0.75, 0.6, 0.6, 2 / 3, 0),
    "track 1 lacks t=4,5 (one id)": ([line(0, 0, 3) | line(0, 6, 9), line(1)], 0.9, 0.9, 0.9, 1, 0),
    "ids swapped from t=5 on": (
        [line(0, 0, 4) | line(1, 5, 9), line(1, 0, 4) | line(0, 5, 9)], 0.5, 0.5, 1 / 3, 1, 0,
    ),
    "track 1 four frames too long": ([line(0, 0, 13), line(1)], 0.8, 0.8, 5 / 6, 1, 0),
    "only one track = first half of 1 + second half of 2": (
        [line(0, 0, 4) | line(1, 5, 9)], 0.25, 0.25, 0.2, 0.5, 0,
    ),
    "no candidates": ([], 0, 0, 0, 0, NAN),
}  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize("case", GOLDEN)
def test_golden_cases_of_the_organisers_scorer(case: str) -> None:
    candidates, *expected = GOLDEN[case]
    np.testing.assert_allclose(particle_values(candidates, [line(0), line(1)]), expected, rtol=1e-12)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shifted", (0.8, 0.8, 1, 1, 1)),
        ("missed link", (5 / 6, 5 / 7, 5 / 7, 2 / 3, 0)),
        ("gap", (5 / 6, 5 / 6, 5 / 6, 1, 0)),
        # A frame that neither has costs as much as a miss: the organisers match no virtual candidate.
        ("gap in both", (5 / 6, 5 / 6, 5 / 6, 1, 0)),
        # An interpolated reference does match.
        ("gap in the truth", (1, 1, 1, 1, 0)),
        ("decoy", (0.6, 0.45, 0.75, 0.5, 2)),
        ("missed division", (0.5, 0.5, 0.6, 2 / 3, 0)),
        ("no links", (1 / 3, 0.2, 0.2, 1 / 3, 0)),
        ("one frame", (1, 1, 1, 1, 0)),
        ("no common frames", (0, 0, 0, 0, NAN)),
        ("nothing true", (NAN, 0, 0, 0, NAN)),
        ("nothing at all", (NAN, NAN, NAN, NAN, NAN)),
    ],
)
def test_scenes_by_hand(name: str, expected: tuple[float, ...]) -> None:
    found = score(SCENES[name].tracks, SCENES[name].truth, gate=5.0, families=["particles"]).values
    np.testing.assert_allclose([found[key] for key in KEYS], expected)


def test_a_gap_outside_the_reference_counts_with_all_its_frames() -> None:
    """As in the organisers' program: three frames too early, though the candidate was seen in one."""
    early = {-3: (0.0, 0.0, -3.0)} | line(0)
    assert particle_values([early, line(1)], [line(0), line(1)])[2] == pytest.approx(20 / 23)


# ------------------------------------------------------------- against a naive reading of the definition


def _dense(path: Path) -> Path:
    """The path with its gaps filled on a line."""
    frames = np.arange(min(path), max(path) + 1)
    known = sorted(path)
    axes = [np.interp(frames, known, [path[t][axis] for t in known]) for axis in range(3)]
    return dict(zip(frames.tolist(), zip(*axes, strict=True), strict=True))


def naive_scores(candidates: list[Path], references: list[Path], gate: float) -> list[float]:
    refs = [_dense(path) for path in references]
    lengths = np.array([len(ref) for ref in refs])
    cost = np.full((len(refs), len(candidates) + len(refs)), 1e9)
    hits: list[list[list[float]]] = [[[] for _ in candidates] for _ in refs]
    for r, ref in enumerate(refs):
        cost[r, len(candidates) + r] = gate * len(ref)
        for c, candidate in enumerate(candidates):
            start, end = max(min(ref), min(candidate)), min(max(ref), max(candidate))
            total = gate * (abs(min(ref) - min(candidate)) + abs(max(ref) - max(candidate)))
            for t in range(start, end + 1):
                distance = math.dist(ref[t], candidate[t]) if t in candidate else gate
                total += min(distance, gate)
                if distance < gate:
                    hits[r][c].append(distance)
            if hits[r][c]:
                cost[r, c] = total
    rows, cols = linear_sum_assignment(cost)
    # Munkres may take a candidate that costs just as much as none; random positions have no such ties.
    pairs = [(r, c) for r, c in zip(rows.tolist(), cols.tolist(), strict=True) if c < len(candidates)]
    best, bound = cost[rows, cols].sum(), gate * lengths.sum()
    unpaired = set(range(len(candidates))) - {c for _, c in pairs}
    penalty = gate * sum(max(candidates[c]) - min(candidates[c]) + 1 for c in unpaired)
    distances = [distance for r, c in pairs for distance in hits[r][c]]
    false = sum(len(candidates[c]) for c in unpaired)
    for r, c in pairs:
        ref, candidate = refs[r], candidates[c]
        false += sum(min(ref) <= t <= max(ref) for t in candidate) - len(hits[r][c])
        false += max(0, min(ref) - min(candidate)) + max(0, max(candidate) - max(ref))
    return [
        1 - best / bound,
        (bound - best) / (bound + penalty),
        len(distances) / (lengths.sum() + false),
        len(pairs) / (len(refs) + len(unpaired)),
        float(np.sqrt(np.mean(np.square(distances)))) if distances else NAN,
    ]


def random_paths(rng: np.random.Generator, count: int, gaps: bool) -> list[Path]:
    """Walks in a box of 12 px, so that with a gate of 5 several are in reach of each other."""
    paths = []
    for _ in range(count):
        first, length = rng.integers(0, 5), rng.integers(1, 8)
        position = rng.uniform(0, 12, 3) + np.cumsum(rng.normal(0, 1, (length, 3)), axis=0)
        seen = rng.random(length) < 0.7 if gaps else np.ones(length, bool)
        seen[[0, -1]] = True
        paths.append({int(first + k): tuple(position[k]) for k in range(length) if seen[k]})
    return paths


@given(seed=st.integers(0, 10**6), counts=st.tuples(st.integers(1, 7), st.integers(0, 7)), gaps=st.booleans())
def test_agrees_with_a_naive_reading(seed: int, counts: tuple[int, int], gaps: bool) -> None:
    rng = np.random.default_rng(seed)
    references, candidates = (random_paths(rng, count, gaps) for count in counts)
    np.testing.assert_allclose(
        particle_values(candidates, references), naive_scores(candidates, references, 5.0), rtol=1e-9
    )


# ------------------------------------------------------------------------------------------- theorems


@given(seed=st.integers(0, 10**6), counts=st.tuples(st.integers(1, 8), st.integers(1, 8)))
def test_all_within_zero_and_one_and_beta_never_above_alpha(seed: int, counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    references, candidates = (random_paths(rng, count, True) for count in counts)
    alpha, beta, jsc, jsc_theta, _ = particle_values(candidates, references)
    assert 0 <= beta <= alpha <= 1
    assert 0 <= jsc <= 1
    assert 0 <= jsc_theta <= 1


@given(seed=st.integers(0, 10**6), gate=st.floats(0.01, 30))
def test_a_track_set_scored_against_itself_is_perfect(seed: int, gate: float) -> None:
    paths = random_paths(np.random.default_rng(seed), 6, False)
    assert particle_values(paths, paths, gate) == [1, 1, 1, 1, 0]


@given(seed=st.integers(0, 10**6))
def test_order_names_and_place_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    references, candidates = random_paths(rng, 6, True), random_paths(rng, 7, True)
    before = particle_values(candidates, references)
    shift = rng.uniform(-1000, 1000, 3)

    def shuffled(paths: list[Path]) -> list[Path]:
        return [
            {t: tuple(np.add(position, shift)) for t, position in paths[k].items()}
            for k in rng.permutation(len(paths))
        ]

    np.testing.assert_allclose(particle_values(shuffled(candidates), shuffled(references)), before, rtol=1e-9)


def test_a_thousand_tracks_of_a_hundred_frames() -> None:
    """Sparse throughout: a table of all pairs of 1000 tracks and 100 frames would not end."""
    rng = np.random.default_rng(0)
    count, frames = 1000, 100
    position = rng.uniform(0, 100, (count, 3)) + np.cumsum(rng.normal(0, 0.5, (frames, count, 3)), axis=0)
    frame = np.repeat(np.arange(frames), count)
    ids = np.tile(np.arange(count), frames)
    truth = Tracks.from_track_ids(Detections.from_table(frame, position.reshape(-1, 3)), ids)
    # Every tenth track is lost, the others are off by 1 px.
    lost = ids % 10 == 0
    moved = position.reshape(-1, 3)[~lost] + [0, 0, 1.0]
    tracks = Tracks.from_track_ids(Detections.from_table(frame[~lost], moved), ids[~lost])
    found = score(tracks, truth, gate=5.0, families=["particles"]).values
    np.testing.assert_allclose([found[key] for key in KEYS], [0.9 * 0.8, 0.9 * 0.8, 0.9, 0.9, 1], rtol=1e-9)
