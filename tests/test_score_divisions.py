"""Division scores by hand: right, late, early, wrong."""

import math

import numpy as np
import pytest

from outbid import Detections, Tracks, score

# A mother in frames 0, 1, 2 divides; her daughters a and b are seen in frames 3, 4, 5. Another is in all.
PLACES = {
    "m0": 0, "m1": 1, "m2": 2, "a3": 3, "a4": 4, "a5": 5, "b3": 3, "b4": 4, "b5": 5,
    **{f"s{t}": t for t in range(6)},
}  # fmt: skip
NAMES = sorted(PLACES, key=lambda name: (PLACES[name], name))
SEEN = Detections.from_table([PLACES[n] for n in NAMES], [[0, i, 0] for i in range(len(NAMES))])


def tracks(*chains: str) -> Tracks:
    links = []
    for chain in chains:
        rows = [NAMES.index(name) for name in chain.split()]
        links += list(zip(rows, rows[1:], strict=False))
    return Tracks(SEEN, np.array(sorted(links), dtype=np.int64).reshape(-1, 2))


OTHER = "s0 s1 s2 s3 s4 s5"
TRUTH = tracks("m0 m1 m2 a3 a4 a5", "m2 b3 b4 b5", OTHER)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("chains", "found", "right"),
    [
        (("m0 m1 m2 a3 a4 a5", "m2 b3 b4 b5"), 1, 1),
        (("m0 m1 m2 a3 a4 a5", "a3 b4 b5"), 1, 1),  # a frame late
        (("m0 m1 m2 b3 b4 b5", "b3 a4 a5"), 1, 1),
        (("m0 m1 m2 a3 a4 a5", "m1 b3 b4 b5"), 1, 1),  # a frame early, over a gap
        (("m0 m1 m2 a3 a4 a5", "a4 b5"), 1, 0),  # two frames late
        (("m0 m1 m2 a3 a4 a5", "m0 b3 b4 b5"), 1, 0),  # two frames early
        (("m0 m1 m2 a3 a4 a5", "s2 b3 b4 b5", OTHER), 1, 0),  # to another cell
        (("m0 m1 m2 a3 a4 a5", "m2 s3 s4 s5"), 1, 0),
        (("m0 m1 m2 a3 a4 a5", "m2 b3 b4 b5", "m2 s3 s4"), 1, 0),  # three daughters
        (("m0 m1 m2 a3 a4 a5", "m2 b3 b4", "b4 b5", "b4 a5"), 2, 1),
        (("m0 m1 m2 a3 a4 a5", "b3 b4 b5"), 0, 0),
    ],
)
def test_divisions_within_a_frame(chains, found, right):
    values = score(tracks(*chains), TRUTH, families=["divisions"]).values
    assert values["n_true_divisions"] == 1
    assert (values["n_found_divisions"], values["n_right_divisions"]) == (found, right)
    assert values["division_f1"] == pytest.approx(2 * right / (1 + found))


def test_no_divisions_at_all_are_no_score():
    values = score(tracks(OTHER), tracks(OTHER), families=["divisions"]).values
    assert math.isnan(values["division_f1"])
