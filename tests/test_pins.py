"""Pins hold exactly, under a gate and under a learned model; solving again is a whole run."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from accuracy.movies import KINDS
from commands import assert_refused, run, succeed
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pinned_film import WAYS, film, held, pin, same
from scenes import backward, tissue

from outbid import (
    Detections,
    SettingsError,
    TrackingSettings,
    Tracks,
    read_record,
    read_tracks,
    track,
    write_detections,
)
from outbid.edit.proofreading import hold, resolve, uncertain_links, write_candidates
from outbid.gated import linking
from outbid.pins import Pin, append_pin, check_pins, drop_last, read_pins, resolve_pins
from outbid.work.chunks.movie import How, track_in_chunks
from outbid.work.jobs import TrackJob


def whole_truth(truth: Tracks) -> list[Pin]:
    """All true links and divisions, and all true starts and ends."""
    source, target = truth.links.T
    mothers = np.flatnonzero(truth.successors > 1)
    single = truth.links[~np.isin(source, mothers)]
    every = np.arange(len(truth.detections))
    named = [("division", (mother, *target[source == mother])) for mother in mothers]
    named += [("link", tuple(link)) for link in single]
    named += [("end", (row,)) for row in np.setdiff1d(every, source)]
    named += [("start", (row,)) for row in np.setdiff1d(every, target)]
    return [pin(kind, *rows, seen=truth.detections) for kind, rows in named]


@pytest.mark.parametrize("way", WAYS)
def test_all_that_is_true_pinned_gives_the_truth_and_undone_the_first_bytes(way: str) -> None:
    first = track(film().detections, WAYS[way]).tracks
    assert not np.array_equal(first.links, film().links)
    found = resolve(held(way), whole_truth(film()))
    np.testing.assert_array_equal(found.run.tracks.links, film().links)
    assert found.run.stats["worst_gap"] == 0
    assert not uncertain_links(found)
    assert same(resolve(held(way)).run.tracks, first)


def test_divisions_pinned_give_the_truth_where_the_movie_divides() -> None:
    truth = KINDS["dividing_few"](0, 0.14)
    model = hold(truth.detections, WAYS["learned"], workers=1)
    found = resolve(model, whole_truth(truth)).run
    np.testing.assert_array_equal(found.tracks.links, truth.links)
    assert found.stats["divisions"] > 10


def test_pins_hold_where_tracks_merge() -> None:
    """They are solved again in reversed time, with the evidence of merges as it was."""
    truth = backward(tissue(cells=60, apart=0.15))
    model = hold(truth.detections, TrackingSettings(merges=True), workers=1)
    first = resolve(model).run
    merging = int(np.flatnonzero(first.tracks.predecessors > 1)[0])
    source = int(first.tracks.links[first.tracks.links[:, 1] == merging][0, 0])
    found = resolve(model, [pin("forbid", source, merging, seen=truth.detections)]).run
    assert [source, merging] not in found.tracks.links.tolist()
    assert found.stats["merges"] == first.stats["merges"] - 1
    assert same(resolve(model).run.tracks, first.tracks)


@pytest.mark.smoke
@pytest.mark.parametrize("way", WAYS)
def test_each_kind_holds_however_unlikely(way: str) -> None:
    """Even a link across the movie, over more frames than any that was learned."""
    seen = film().detections
    first, last = (seen.rows_of(frame) for frame in (0, 7))
    far = int(np.argmax(np.linalg.norm(seen.position[last] - seen.position[0], axis=1))) + last.start
    links = resolve(held(way)).run.tracks.links
    (a, b), (c, _) = links[links[:, 0] > first.stop][:2]
    e, f = int(seen.rows_of(4).start), int(seen.rows_of(4).start) + 1
    pins = [
        pin("link", 0, far), pin("forbid", a, b), pin("end", c), pin("start", int(links[-1, 1])),
        pin("division", int(seen.rows_of(3).start), e, f), pin("no_particle", 7),
        pin("same_cell", 3, int(last.stop) - 1),
    ]  # fmt: skip
    found = resolve(held(way), pins)
    tracks = found.run.tracks
    pairs = set(map(tuple, tracks.links.tolist()))
    assert {(0, far), (int(seen.rows_of(3).start), e), (int(seen.rows_of(3).start), f)} <= pairs
    assert (a, b) not in pairs
    assert not {7, int(c)} & set(tracks.links[:, 0].tolist())
    assert not {7, int(links[-1, 1])} & set(tracks.links[:, 1].tolist())
    assert tracks.track_id[3] == tracks.track_id[int(last.stop) - 1]
    assert ((tracks.successors <= 1) | (np.arange(len(seen)) == seen.rows_of(3).start)).all()
    assert (tracks.predecessors <= 1).all()
    assert same(tracks, track(seen, WAYS[way], pins=pins, workers=2).tracks)
    if way == "learned":
        assert tracks.link_probability is not None
        assert tracks.link_probability[(tracks.links == [0, far]).all(axis=1)] == 1
        assert found.clutter[7] > 0.999


@st.composite
def statements(draw: st.DrawFn) -> list[Pin]:
    """Up to fifty pins on near detections of the film that do not contradict each other."""
    seen, pins = film().detections, []
    kinds = st.sampled_from(["link", "forbid", "end", "start", "no_particle"])
    least = draw(st.sampled_from([0, 20, 40]))
    for kind in draw(st.lists(kinds, min_size=least, max_size=least + 10)):
        row = draw(st.integers(0, seen.rows_of(5).stop - 1))
        later = np.arange(len(seen))[seen.rows_of(int(seen.frame[row]) + draw(st.integers(1, 2)))]
        near = later[np.argsort(np.linalg.norm(seen.position[later] - seen.position[row], axis=1))]
        rows = (row, int(near[draw(st.integers(0, 2))])) if kind in ("link", "forbid") else (row,)
        try:
            check_pins([*pins, pin(kind, *rows)])
        except SettingsError:
            continue
        pins.append(pin(kind, *rows))
    return pins


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=examples(80))
@given(one=statements(), other=statements())
def test_what_is_solved_again_is_a_whole_run(way: str, one: list[Pin], other: list[Pin]) -> None:
    """Whatever was stated before, in whatever order; a few frames at a time where there is a gate.

    By night more than 1,000 pins in all.
    """
    with mock.patch.object(linking, "RUN", 100):
        resolve(held(way), one)
        found = resolve(held(way), other).run.tracks
        assert same(found, resolve(held(way), other[::-1]).run.tracks)
        again = held(way, 2) if way == "learned" else hold(film().detections, WAYS[way], workers=2)
        assert same(found, resolve(again, other).run.tracks)
        if way == "gated":
            assert same(found, track(film().detections, WAYS[way], pins=other).tracks)
    pairs = set(map(tuple, found.links.tolist()))
    for stated, rows in zip(other, rows_of(other), strict=True):
        assert len(rows) == 1 or (rows in pairs) == (stated.kind == "link")


def rows_of(pins: Sequence[Pin]) -> list[tuple[int, ...]]:
    return list(resolve_pins(pins, film().detections).rows)


@pytest.mark.smoke
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), exact=st.booleans())
def test_a_gate_with_pins_is_the_least_cost_of_what_they_leave(seed: int, exact: bool) -> None:
    """Against every set of pairs of four points with four; with the margins of the constrained problem."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, 2, (8, 3))
    seen = Detections.from_table(np.repeat([0, 1], 4), place)
    i, j, k = rng.integers(4, size=3)
    pins = [pin("link", i, 4 + j, seen=seen), pin("forbid", (i + 1) % 4, 4 + k, seen=seen)]
    pins += [pin("end", (i + 2) % 4, seen=seen)] if rng.random() < 0.5 else []
    free = {(i + 1) % 4, (i + 3) % 4} | ({(i + 2) % 4} if len(pins) < 3 else set())
    apart = np.linalg.norm(place[:4, None] - place[4:], axis=2)

    def least(without: tuple[int, int] | None = None) -> tuple[float, set[tuple[int, int]]]:
        """Least cost, where a pair saves what its two ends cost when they are left."""
        no = {((i + 1) % 4, k), without}
        best = 0.0, set[tuple[int, int]]()
        for choice in product([-1, *(c for c in range(4) if c != j)], repeat=len(free)):
            pairs = {(r, c) for r, c in zip(sorted(free), choice, strict=True) if c >= 0}
            columns = [c for _, c in pairs]
            if len(set(columns)) == len(columns) and not pairs & no:
                best = min(best, (sum(apart[pair] - 1.5 for pair in pairs), pairs), key=lambda one: one[0])
        return best

    found = track(seen, max_distance=1.5, pins=pins, exact_margins=exact)
    cost, pairs = least()
    assert found.stats["worst_gap"] == 0
    assert set(map(tuple, (found.tracks.links - [0, 4]).tolist())) == pairs | {(i, j)}
    for link, margin in zip((found.tracks.links - [0, 4]).tolist(), found.tracks.link_margin, strict=True):
        other = np.inf if link == [i, j] else least(tuple(link))[0] - cost
        assert margin == pytest.approx(other, abs=1e-6) if exact else margin <= other + 1e-6


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ((("link", 0, 70), ("link", 0, 71)), "pin 1: link .* contradicts pin 2: link"),
        ((("link", 0, 70), ("link", 1, 70)), "contradicts"),
        ((("link", 0, 70), ("forbid", 0, 70)), "contradicts pin 2: forbid"),
        ((("end", 0), ("division", 0, 70, 71)), "contradicts"),
        ((("no_particle", 70), ("link", 0, 70)), "contradicts"),
        ((("same_cell", 0, 300), ("end", 0)), "contradicts"),
        ((("link", 70, 0),), "later frame"),
        ((("link", 0),), "2 are needed"),
        ((("like", 0),), "Choose one of: link, forbid"),
        ((("move", 0, 70),), "moves within its frame"),
    ],
)
def test_what_contradicts_is_refused_with_both(kinds: tuple[tuple, ...], said: str, tmp_path: Path) -> None:
    pins = [pin(kind, *rows)._replace(number=k) for k, (kind, *rows) in enumerate(kinds, 1)]
    with pytest.raises(SettingsError, match=said):
        TrackingSettings(pins=pins)
    table = tmp_path / "pins.csv"
    for one in pins[:-1]:
        append_pin(table, one)
    before = table.read_bytes() if table.exists() else None
    with pytest.raises(ValueError, match=r"Remove|Exchange|needed|Choose"):
        append_pin(table, pins[-1])
    assert before == (table.read_bytes() if table.exists() else None)


def test_one_particle_whose_chain_others_break_is_refused() -> None:
    pins = [pin("same_cell", 0, 300), pin("link", 0, int(film().detections.rows_of(7).stop) - 1)]
    for way in WAYS:
        with pytest.raises(SettingsError, match="no chain of links"):
            resolve(held(way), pins)


def test_a_table_replays_and_undo_drops_a_line(tmp_path: Path) -> None:
    """Commands give the bytes that were there; pins survive another detection; what is lost is named."""
    seen, table, spots = film().detections, tmp_path / "pins.csv", tmp_path / "spots.csv"
    write_detections(spots, seen)
    wrong = [pin("link", 0, 75)._replace(user="a, b", p_before=0.1 + 0.2), pin("end", 5)]
    kept = [append_pin(table, one) for one in wrong]
    assert [one.number for one in kept] == [1, 2]
    assert read_pins(table) == tuple(kept)
    assert kept[0].p_before == 0.1 + 0.2
    outputs = []
    for name, options in (("a", ("--pins", table)), ("b", ("--config", tmp_path / "a.csv.json")), ("c", ())):
        done = succeed("track", spots, "-o", tmp_path / f"{name}.csv", "--max-distance", "0.8", *options)
        outputs.append((tmp_path / f"{name}.csv").read_bytes())
        assert ("Pins: 2; left out: 0." in done.output) == (name != "c")
    assert outputs[0] == outputs[1] != outputs[2]
    assert [0, 75] in read_tracks(tmp_path / "a.csv").links.tolist()
    record = read_record(tmp_path / "a.csv")
    assert len(record["settings"]["pins"]) == 2
    assert record["unmatched_pins"] == 0
    assert drop_last(table) == kept[1]
    assert read_pins(table) == (kept[0],)
    moved = Detections(seen.frame, seen.position + 0.01, seen.unit)
    lost = pin("end", 5)._replace(detections=((0, (0, -9, 0)),))
    again = track(moved, max_distance=0.8, pins=[*read_pins(table), lost])
    assert [0, 75] in again.tracks.links.tolist()
    assert again.stats["pins"] == 2
    assert "end frame 0 (0, -9, 0)" in again.warning


@pytest.mark.parametrize("way", WAYS)
def test_candidates_are_written_with_their_probabilities_and_pins(way: str, tmp_path: Path) -> None:
    """A graph of them is read as the tracks that were chosen."""
    links = resolve(held(way)).run.tracks.links.tolist()
    pins = [pin("forbid", *links[5]), pin("link", *links[9])]
    found = resolve(held(way), pins)
    write_candidates(tmp_path / "all.geff", found)
    back = read_tracks(tmp_path / "all.geff")
    np.testing.assert_array_equal(back.links, found.run.tracks.links)
    kept = read_record(tmp_path / "all.geff")["settings"]["pins"]
    assert [one["kind"] for one in kept] == ["forbid", "link"]
    write_candidates(tmp_path / "all.parquet", found)
    listed = pa.parquet.read_table(tmp_path / "all.parquet").to_pylist()
    assert [[one["source"], one["target"]] for one in listed if one["solution"]] == back.links.tolist()
    stated = {(one["source"], one["target"]): one["pin"] for one in listed if one["pin"]}
    assert stated == {tuple(links[5]): -1, tuple(links[9]): 1}
    if way == "learned":
        assert len(listed) > 2 * len(links)
        chosen = np.array([one["probability"] for one in listed if one["solution"]])
        np.testing.assert_array_equal(back.link_probability, chosen)
        np.testing.assert_allclose(chosen, found.run.tracks.link_probability, atol=1e-9)


def test_other_programs_read_candidates_and_select_the_tracks_by_solution(tmp_path: Path) -> None:
    geff, networkx = pytest.importorskip("geff"), pytest.importorskip("networkx")
    from geff.validate.data import ValidationConfig

    found = resolve(held("learned"), [pin("end", 5)])
    write_candidates(tmp_path / "all.geff", found)
    geff.validate_structure(tmp_path / "all.geff")
    every, about = geff.read(tmp_path / "all.geff", data_validation=ValidationConfig(graph=True))
    tracks = found.run.tracks
    assert about.directed
    assert {"probability", "solution", "pin"} == set(about.edge_props_metadata)
    assert every.number_of_edges() > 2 * len(tracks.links)
    assert [data["z"] for _, data in every.nodes(data=True)] == tracks.detections.position[:, 0].tolist()
    solution = every.edge_subgraph((a, b) for a, b, chosen in every.edges(data="solution") if chosen)
    assert sorted(map(list, solution.edges)) == tracks.links.tolist()
    parts = {frozenset(map(int, part)) for part in networkx.weakly_connected_components(solution)}
    rows = [np.flatnonzero(tracks.track_id == number) for number in range(tracks.track_count)]
    assert parts == {frozenset(of.tolist()) for of in rows if len(of) > 1}
    reader = geff.GeffReader(tmp_path / "all.geff")  # which builds a part of a graph alone
    reader.read_edge_props(["solution"])
    whole = reader.build()
    part = reader.build(edge_mask=np.asarray(whole["edge_props"]["solution"]["values"], bool))
    assert sorted(part["edge_ids"].tolist()) == tracks.links.tolist()


def test_what_does_not_hold_the_whole_movie_refuses_pins(tmp_path: Path) -> None:
    table, spots = tmp_path / "pins.csv", tmp_path / "spots.parquet"
    write_detections(spots, film().detections)
    append_pin(table, pin("end", 0))
    common = "track", spots, "--pins", table, "--max-distance", "0.8"
    assert_refused(run(*common, "-o", tmp_path / "a.parquet", "--stream"), 2, "whole movie in memory")
    assert "and --pins out" in run(*common, "--out-dir", tmp_path / "many").stderr
    job, how = TrackJob(TrackingSettings(0.8, pins=table)), How(ThreadPoolExecutor(1))
    with pytest.raises(SettingsError, match="whole movie: leave out --stream or the cluster"):
        track_in_chunks(spots, tmp_path / "b.parquet", job, how)
    (tmp_path / "none.csv").write_text("a,b\n1,2\n")
    assert_refused(run("track", spots, "--pins", tmp_path / "none.csv"), 3, "not a table of pins")


def test_doubts_are_listed_with_what_else_may_be() -> None:
    """Least probable first; what is present is among the alternatives, and a pin ends the doubt."""
    found = resolve(held("learned"))
    listed = uncertain_links(found)
    assert [one.value for one in listed] == sorted(one.value for one in listed)
    tracks = found.run.tracks
    for one in listed[:50]:
        assert tuple(tracks.links[tracks.links[:, 0] == one.row, 1].tolist()) == one.successors
        shown = [row for row, _ in one.alternatives]
        assert set(one.successors or (-1,)) <= set(shown)
        assert [p for _, p in one.alternatives] == sorted((p for _, p in one.alternatives), reverse=True)
    right = set(map(tuple, film().links.tolist()))
    wrong = sum(tuple(link) not in right for link in tracks.links.tolist())
    assert 0.6 * wrong < found.expected_wrong < 1.6 * wrong
    stated = pin("end", listed[0].row)
    assert listed[0].row not in [one.row for one in uncertain_links(resolve(held("learned"), [stated]))]
    assert len(uncertain_links(resolve(held("gated")), 3)) == 3
