"""Accuracy of learned linking: what is measured of a movie, how two records are compared, a few movies."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from accuracy.compare import compared
from accuracy.linkers import named
from accuracy.measured import Measured, Record, measured
from accuracy.movies import Movie
from accuracy.options import is_constant, scale_constant


def made(kind: str, seed: int, f1: float, sure: float = 0.9) -> Measured:
    """A measurement of 100 links, of which 90 are right, each with a probability of `sure`."""
    stated, right, count = np.zeros(20), np.zeros(20, int), np.zeros(20, int)
    place = min(int(sure * 20), 19)
    stated[place], right[place], count[place] = 100 * sure, 90, 100
    return Measured(
        Movie(kind, 0.14, seed), "same", 100, f1, f1, np.nan, 1.0, "",
        tuple(stated.tolist()), tuple(right.tolist()), tuple(count.tolist()),
    )  # fmt: skip


def record(rows: list[Measured]) -> Record:
    return Record({"commit": "some", "linker": "any"}, rows)


def pair(apart: float, noise: float, sure: float = 0.9) -> tuple[Record, Record]:
    """Two records of two kinds, of which the second kind differs by `apart` and some noise."""
    rng = np.random.default_rng(0)
    old = [made(kind, seed, 0.9 + 0.01 * seed) for kind in ("few", "noisy") for seed in range(12)]
    new = [
        replace(
            row,
            link_f1=row.link_f1 + (apart + noise * rng.normal() if row.movie.kind == "noisy" else 0),
            stated=made("few", 0, 0, sure).stated,
            right=made("few", 0, 0, sure).right,
        )
        for row in old
    ]
    return record(new), record(old)


@pytest.mark.parametrize(
    ("apart", "noise", "sure", "behind", "passed"),
    [
        (0, 0, 0.9, [], True),
        (-0.004, 1e-4, 0.9, ["noisy 0.14"], False),
        (-0.004, 0.03, 0.9, [], False),  # within its error, but the mean is behind
        (0, 0, 0.99, [], False),  # probabilities are too sure
    ],
)
def test_a_record_passes_if_nothing_is_behind_by_more_than_its_error(
    apart: float, noise: float, sure: float, behind: list[str], passed: bool
) -> None:
    verdict = compared(*pair(apart, noise, sure))
    assert [kind.name for kind in verdict.kinds if kind.behind] == behind
    assert verdict.passed == passed


def test_two_movies_of_one_name_are_not_compared() -> None:
    new, old = pair(0, 0)
    changed = record([replace(new.rows[0], fingerprint="other"), *new.rows[1:]])
    with pytest.raises(ValueError, match="another movie"):
        compared(changed, old)


def test_scores_of_links_that_are_known_and_kept(tmp_path: Path) -> None:
    truth = Movie("few", 0.14).truth()
    half = np.arange(len(truth.links)) % 2 == 0
    row = measured(Movie("few", 0.14), truth, lambda *_: (truth.links[half], np.full(half.sum(), 0.75)))
    assert row.link_f1 == pytest.approx(2 / 3, abs=1e-3)
    assert row.calibration_error == pytest.approx(0.25)
    assert np.isnan(row.division_f1)
    Record({"commit": "some"}, [row]).save(tmp_path / "a.npz")
    after = Record.load(tmp_path / "a.npz")
    assert (after.about, after.rows[0].movie, after.rows[0].count) == (
        {"commit": "some"}, row.movie, row.count,
    )  # fmt: skip
    assert after.rows[0].link_f1 == pytest.approx(row.link_f1)


def test_a_linker_that_fails_is_scored_as_one_that_links_nothing() -> None:
    movie = Movie("few", 0.14)
    row = measured(movie, movie.truth(), named("accuracy.linkers:named"))  # which takes no movie
    assert row.error.startswith("TypeError")
    assert sum(row.count) == 0


def test_a_constant_is_scaled_wherever_it_is_read_and_set_back() -> None:
    width, blobs = import_module("outbid.detection.width"), import_module("outbid.detection.blobs")
    usual = width.TRIED
    back = scale_constant("detection.width.TRIED*2")
    assert blobs.TRIED == width.TRIED == 2 * usual
    back()
    assert blobs.TRIED == width.TRIED == usual
    assert is_constant("learned.learn.starts._NOISE*0.5")
    assert not is_constant("still*0.5")
    for wrong in ("learned.learn.em._NONE*2", "detection.fit_cpu.AMPLITUDE*2"):
        with pytest.raises(ValueError, match=r"no _NONE|Compiled functions"):
            scale_constant(wrong)
