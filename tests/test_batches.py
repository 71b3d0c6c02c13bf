"""Batches of frame pairs: planned to fit the memory, from a sample of the candidates."""

import json
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from commands import succeed
from scenes import blinking

from outbid import TrackingSettings, match, read_detections, track, write_detections
from outbid.compute.threads import Ahead
from outbid.compute.timing import stages_timed
from outbid.formats import read_record
from outbid.gated import batches
from outbid.gated.batches import Batches, bytes_for, candidates_each, plan, runs
from outbid.geometry.gating import pairs_within
from outbid.pins import Pin


@pytest.mark.parametrize("clumped", [False, True])
def test_a_sample_shows_how_many_candidates_there_are(clumped):
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 30, (40_000, 3))
    if clumped:
        first = rng.normal(0, 2, first.shape) + 10 * rng.integers(0, 4, (len(first), 1))
    second = first + rng.normal(0, 0.1, first.shape)
    both = np.array([0, len(first)])
    true = pairs_within(first, second, 1.2, both, both).indptr[-1] / len(first)
    start = np.array([0, len(first), 2 * len(first)])
    assert candidates_each(np.concatenate([first, second]), start, 1.2) == pytest.approx(true, rel=0.15)


@pytest.mark.smoke
@pytest.mark.parametrize("memory", [0, 10**9, 3 * 10**9, 10**12])
def test_batches_at_once_fit_the_memory_and_hold_every_pair_once(memory):
    rng = np.random.default_rng(1)
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 900_000, 60) * (rng.random(60) > 0.2))])
    planned = plan(start, 9.0, memory)
    needed = batches.bytes_of_frames(start, 9.0)
    pairs = [frame for first, last in planned.runs for frame in range(first, last)]
    filled = [frame for frame in range(59) if start[frame] < start[frame + 1] < start[frame + 2]]
    assert sorted(set(pairs)) == sorted(pairs)
    assert set(filled) <= set(pairs)
    taken = sorted(sum(needed[first:last]) for first, last in planned.runs)
    assert planned.planned_bytes == sum(taken[-planned.at_once :]) + planned.at_once * batches.BATCH_BYTES
    if memory > needed.max() + batches.BATCH_BYTES:
        assert planned.planned_bytes <= memory
        assert planned.at_once == (batches.LANES if memory > 10**9 else 1)
    else:
        assert all(len(set(range(*run)) & set(filled)) <= 1 for run in planned.runs)


def test_a_denser_frame_is_planned_with_more_candidates():
    start = np.array([0, 1000, 2000, 12_000])
    least, most, none = batches.bytes_of_frames(start, 5.0)
    least, most, none = (int(more) + batches.BATCH_BYTES for more in (least, most, none))
    assert none == bytes_for(5_000, 0)
    assert most - bytes_for(5_500, 0) > 9 * (least - bytes_for(1000, 0))


def test_nothing_is_planned_for_nothing():
    for start in (np.array([0]), np.array([0, 5])):
        assert plan(start, candidates_each(np.zeros((5, 3)), start, 1.0), 10**9).runs == runs(start, 10) == []


def test_accounts_add_up_and_come_back_from_a_record():
    both = Batches(3, 100, 1, 0, 6) + Batches(2, 70, 0, 4, 1)
    assert both == Batches(5, 100, 1, 4, 7)
    assert Batches.from_dict(both.as_dict()) == both
    assert both.fallbacks == 12


class _There(np.ndarray):
    """An array that is taken to live on a GPU."""


def _solved_there(*given, **settings):
    found = match(*given, **settings)
    assignment = replace(found.assignment, col_of_row=found.assignment.col_of_row.view(_There))
    return replace(found, assignment=assignment)


@pytest.fixture
def gpu(monkeypatch):
    """The host, taken for a machine with a GPU that has kernels for no solver."""
    door, linking = import_module("outbid.gated.movie"), import_module("outbid.gated.linking")
    for module in (import_module("outbid.tracking"), import_module("outbid.work.stream")):
        monkeypatch.setattr(module, "device_for", lambda *_: "gpu")
    monkeypatch.setattr(door, "to_device", lambda points: points.view(_There))
    monkeypatch.setattr(door, "free_device_memory", lambda: 10**9)
    monkeypatch.setattr(linking, "on_device", lambda array: isinstance(array, _There))
    return linking


@pytest.fixture
def movie(tmp_path):
    write_detections(tmp_path / "movie.parquet", blinking(0.05, 0.1, 100, 6, seed=2).detections)
    return tmp_path / "movie.parquet"


@pytest.mark.smoke
@pytest.mark.parametrize("mode", [["--max-gap", "2"], ["--stream"]])
@pytest.mark.parametrize("solver", ["jonker_volgenant", "greedy"])
@pytest.mark.usefixtures("gpu")
def test_a_solver_without_kernels_is_counted_and_named(solver, mode, movie):
    out = movie.with_name("out.parquet")
    words = ["--max-distance", "0.6", "--device", "gpu", "--solver", solver, "--json", "-v"]
    done = succeed("track", movie, "-o", out, *words, *mode)
    summary, record = json.loads(done.stdout), read_record(out)
    assert (summary["device"], summary["candidates_on"], summary["solved_on"]) == ("cpu", "gpu", "cpu")
    assert summary["solver"] == record["settings"]["solver"] == solver
    assert summary["batches"] == 0
    assert summary["fallbacks"] == summary["without_kernels"] == 2  # the last frame, or the gaps, alone
    of_gates = [name for name in batches.RECORDED if name not in ("swept_on", "unmatched_pins")]
    assert {name: record[name] for name in of_gates} == {name: summary[name] for name in of_gates}
    assert ", cpu, " in done.stderr
    assert f"The solver {solver} has no GPU kernels for such problems: 2 batches" in done.stderr


@pytest.mark.parametrize("exact", [False, True])
def test_a_solver_with_kernels_ran_there(exact, gpu, movie, monkeypatch):
    monkeypatch.setattr(gpu, "match", _solved_there)
    settings = TrackingSettings(0.6, max_gap=1, device="gpu", exact_margins=exact)
    stats = track(read_detections(movie), settings).stats
    assert (stats["device"], stats["solved_on"], stats["fallbacks"], stats["batches"]) == ("gpu", "gpu", 0, 2)
    assert stats["margins_on"] == ("cpu" if exact else "gpu")
    assert "no GPU kernels" not in batches.sentence(stats)


@pytest.mark.usefixtures("gpu")
def test_pins_hold_there(movie):
    seen, settings = read_detections(movie), TrackingSettings(0.6, max_gap=1, device="gpu")
    (first, second), (ends, _) = track(seen, settings).tracks.links[:2]
    at = [(int(seen.frame[row]), tuple(seen.position[row].tolist())) for row in (first, second, ends)]
    links = track(seen, settings, pins=(Pin("forbid", tuple(at[:2])), Pin("end", (at[2],)))).tracks.links
    assert [first, second] not in links.tolist()
    assert ends not in links[:, 0]
    assert len(links) > 400


def test_what_goes_wrong_ahead_is_raised_where_it_is_used_and_nothing_more_is_made():
    made = []

    def items():
        for k in range(10):
            made.append(k)
            if k == 2:
                raise ValueError("no third")
            yield k

    with stages_timed() as (seconds, beside):
        taken = Ahead(items(), "made")
        assert [next(taken), next(taken)] == [0, 1]
        with pytest.raises(ValueError, match="no third"):
            next(taken)
    assert made == [0, 1, 2]
    assert "made" in beside
    assert "made" not in seconds


def test_what_is_left_early_is_closed():
    closed = []

    def items():
        try:
            yield from range(10)
        finally:
            closed.append(True)

    left = Ahead(items(), "made")
    assert next(left) == 0
    left.close()
    assert closed
