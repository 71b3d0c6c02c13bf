"""The simulated microscope: rates, errors, true links over missed frames; and `outbid simulate`."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import run, succeed
from hypothesis import given
from hypothesis import strategies as st

from outbid.errors import InputError, SettingsError
from outbid.formats import read_detections, read_record, read_tracks
from outbid.formats.images.folders import open_movie
from outbid.particles.detections import Detections
from outbid.particles.tracks import Tracks
from outbid.simulate.cli import simulate
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import BrownianWalk, OrnsteinUhlenbeckWalk
from outbid.simulate.settings import UNITS
from outbid.simulate.walks import BOUNDARIES, WalkSettings, walk

BOX = (20.0, 30.0, 40.0)
SIGMAS = 4.5


def movie(particles: int = 200, frames: int = 12, seed: int = 0) -> Tracks:
    configuration = WalkSettings(
        BrownianWalk(0.5), particles, frames, BOX, "periodic", birth_rate=0.05, death_rate=0.05, seed=seed
    )
    return walk(configuration)


def row_in_truth(seen: Detections, truth: Detections) -> np.ndarray:
    """(M,) rows of the truth at exactly the same frame and place, -1 where there is none."""
    true, found = (np.column_stack([given.frame, given.position]).tolist() for given in (truth, seen))
    row_at = {tuple(spot): row for row, spot in enumerate(true)}
    return np.array([row_at.get(tuple(spot), -1) for spot in found], dtype=np.int64)


# ---------------------------------------------------------------- what is seen


def test_a_perfect_microscope_sees_the_truth_in_another_order() -> None:
    truth = movie()
    seen = observe(truth, Microscope(), box=BOX, seed=1)
    row = row_in_truth(seen.detections, truth.detections)
    np.testing.assert_array_equal(np.sort(row), np.arange(len(truth.detections)))
    links = row[seen.links]
    np.testing.assert_array_equal(links[np.lexsort(links.T[::-1])], truth.links)
    # The order of rows must not show a tracker who is who.
    assert abs(np.mean(np.diff(row) == 1)) < 0.05


@pytest.mark.smoke
def test_noise_has_its_standard_deviation_along_each_axis_and_no_bias() -> None:
    truth = movie(2000, 10)
    noise = (0.9, 0.3, 0.0)
    clear, blurred = (
        observe(truth, seen_by, box=BOX, seed=2) for seen_by in (Microscope(), Microscope(noise))
    )
    error = blurred.detections.position - clear.detections.position  # the order is the same
    sigma, count = np.array(noise), len(error)
    assert (np.abs(error.mean(axis=0)) <= SIGMAS * sigma / np.sqrt(count)).all()
    assert (np.abs(error.std(axis=0) - sigma) <= SIGMAS * sigma / np.sqrt(2 * count)).all()
    correlation = np.corrcoef(error[:, :2].T)[0, 1]
    assert abs(correlation) < SIGMAS / np.sqrt(count)
    np.testing.assert_array_equal(blurred.links, clear.links)


def test_misses_and_clutter_come_at_their_rates() -> None:
    truth = movie(2000, 10)
    seen = observe(truth, Microscope(miss=0.15, clutter=0.08), box=BOX, seed=3)
    row, total = row_in_truth(seen.detections, truth.detections), len(truth.detections)
    true = int((row >= 0).sum())
    assert abs(true - 0.85 * total) < SIGMAS * np.sqrt(0.85 * 0.15 * total)
    clutter = seen.detections.position[row < 0]
    assert abs(len(clutter) - 0.08 * total) < SIGMAS * np.sqrt(0.08 * total)
    assert (clutter >= 0).all()
    assert (clutter <= BOX).all()
    for axis, length in enumerate(BOX):
        counts = np.histogram(clutter[:, axis], bins=8, range=(0, length))[0]
        assert ((counts - len(clutter) / 8) ** 2 / (len(clutter) / 8)).sum() < 32  # 7 degrees: 1 in 25,000


@pytest.mark.smoke
@given(st.floats(0, 1), st.floats(0, 0.5), st.integers(0, 10**6))
def test_links_join_each_particles_detections_and_no_clutter(miss: float, clutter: float, seed: int) -> None:
    truth = movie(12, 9, seed)
    seen = observe(truth, Microscope(miss=miss, clutter=clutter), box=BOX, seed=seed)
    row = row_in_truth(seen.detections, truth.detections)
    label = np.where(row >= 0, truth.track_id[row], -1) if len(row) else row
    np.testing.assert_array_equal(seen.links, Tracks.from_track_ids(seen.detections, label).links)


def test_daughters_of_a_missed_mother_follow_who_was_seen_before_her() -> None:
    # A chain of 400 frames that divides at the end; nobody sees all of the chain at miss .5.
    frame = np.append(np.arange(400), 399)
    place = np.column_stack([frame * 0.04, np.append(np.zeros(400), 9.0), np.zeros(401)])
    links = np.append(np.column_stack([np.arange(399), np.arange(1, 400)]), [[398, 400]], axis=0)
    truth = Tracks(Detections.from_table(frame, place), links)
    both = 0
    for seed in range(20):
        seen = observe(truth, Microscope(miss=0.5), box=BOX, seed=seed)
        row = row_in_truth(seen.detections, truth.detections)
        joined = {(int(row[source]), int(row[target])) for source, target in seen.links}
        chain = sorted(set(row.tolist()) - {399, 400})
        daughters = set(row.tolist()) & {399, 400}
        assert joined == {*zip(chain, chain[1:], strict=False), *((chain[-1], child) for child in daughters)}
        both += len(daughters) == 2 and chain[-1] < 398
    assert both  # the case of the name has occurred


def test_merging_tracks_are_refused() -> None:
    merging = Tracks(
        Detections.from_table([3, 3, 4], [[0, 0, 0], [0, 0, 2], [0, 0, 1]]), np.array([[0, 2], [1, 2]])
    )
    with pytest.raises(InputError, match=r"merge at detection 2 \(frame 4\)"):
        observe(merging, Microscope(), box=BOX)


def test_nothing_to_see_is_an_empty_movie() -> None:
    empty = observe(movie(0), Microscope((1, 1, 1), 0.1, 0.1), box=BOX)
    blind = observe(movie(), Microscope(miss=1.0), box=BOX)
    assert len(empty.detections) == len(empty.links) == len(blind.detections) == len(blind.links) == 0


@pytest.mark.parametrize(
    "wrong", [{"miss": 1.2}, {"clutter": -0.1}, {"noise": (1.0, 1.0)}, {"noise": (0.0, -1.0, 0.0)}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict) -> None:
    with pytest.raises(SettingsError, match=f"{next(iter(wrong))} "):
        Microscope(**wrong)


# ---------------------------------------------------------------- seeds


def test_a_part_of_the_frames_gives_that_part_of_the_view() -> None:
    truth, microscope = movie(), Microscope((0.3, 0.2, 0.1), 0.2, 0.2)
    whole = observe(truth, microscope, box=BOX, seed=5).detections
    rest = truth.detections.frame >= 7
    alone = observe(
        Tracks(truth.detections.take(rest), np.empty((0, 2), np.int64)), microscope, box=BOX, seed=5
    )
    np.testing.assert_array_equal(alone.detections.position, whole.position[whole.frame >= 7])
    other = observe(truth, microscope, box=BOX, seed=6).detections
    assert not np.array_equal(other.position[:50], whole.position[:50])


def test_more_misses_leave_the_errors_of_the_others_as_they_were() -> None:
    truth = movie()
    few, many = (
        observe(truth, Microscope((0.3, 0.2, 0.1), miss), box=BOX, seed=7).detections for miss in (0.1, 0.4)
    )
    seen = {tuple(place) for place in few.position.tolist()}
    assert len(many) < len(few)
    assert {tuple(place) for place in many.position.tolist()} < seen


# ---------------------------------------------------------------- the command

NOISY = ["--miss", "0.1", "--clutter", "0.1", "--noise", "0.3", "0.1", "0.1", "--birth-rate", "0.05"]


@pytest.mark.smoke
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_writes_truth_and_detections_and_repeats_itself(tmp_path: Path, suffix: str) -> None:
    truth, seen, again = (tmp_path / f"{name}.{suffix}" for name in ("truth", "seen", "again"))
    words = ["--particles", 60, "--frames", 8, "--box", 9, 12, 15, "--motion", "ornstein-uhlenbeck"]
    words += ["--death-rate", 0.05, "--seed", 4, *NOISY]
    succeed("simulate", "-o", truth, "--detections", seen, *words)
    tracks, detections = read_tracks(truth), read_detections(seen)
    box = (9.0, 12.0, 15.0)
    configuration = WalkSettings(OrnsteinUhlenbeckWalk(1.0, 5.0), 60, 8, box, "reflect", 0.05, 0.05, seed=4)
    expected = observe(walk(configuration), Microscope((0.3, 0.1, 0.1), 0.1, 0.1), box=box, seed=4)
    np.testing.assert_array_equal(tracks.detections.position, expected.detections.position)
    np.testing.assert_array_equal(tracks.links, expected.links)
    np.testing.assert_array_equal(tracks.detections.position, detections.position)
    np.testing.assert_array_equal(tracks.detections.frame, detections.frame)
    assert not detections.features
    assert len(tracks.links) > 200
    assert read_record(truth) == read_record(seen)
    succeed("simulate", "-o", again, "--config", truth)
    assert again.read_bytes() == truth.read_bytes()
    if suffix == "csv":
        assert Path(f"{again}.json").read_bytes() == Path(f"{truth}.json").read_bytes()


def test_the_unit_is_stated_by_all_outputs(tmp_path: Path) -> None:
    truth, seen, movie = tmp_path / "truth.csv", tmp_path / "seen.parquet", tmp_path / "movie.ome.tif"
    words = ["--particles", 3, "--frames", 2, "--box", 9, 20, 20, "--unit", "micrometer"]
    succeed("simulate", "-o", truth, "--detections", seen, "--movie", movie, *words)
    units = [read_tracks(truth).detections.unit, read_detections(seen).unit, open_movie(movie).unit]
    assert units == ["micrometer"] * 3
    succeed("simulate", "-o", tmp_path / "again.csv", "--config", truth)
    assert read_tracks(tmp_path / "again.csv").detections.unit == "micrometer"


def test_every_option_of_the_command_reaches_the_simulation(tmp_path: Path) -> None:
    plain = ["simulate", "-o", tmp_path / "plain.csv", "--particles", 30, "--frames", 6]
    succeed(*plain)
    before = (tmp_path / "plain.csv").read_bytes()
    options = [
        ["--particles", 31], ["--frames", 7], ["--box", 9, 9, 9], ["--motion", "brownian"], ["--step", 2],
        ["--directionality", 0.2], ["--boundary", "open", "--box", 2, 2, 2], ["--birth-rate", 0.3],
        ["--death-rate", 0.3], ["--noise", 0, 0, 0.1], ["--miss", 0.3], ["--clutter", 0.3], ["--seed", 1],
        ["--motion", "ornstein-uhlenbeck"], ["--motion", "ornstein-uhlenbeck", "--persistence-time", 50],
    ]  # fmt: skip
    contents = {before}
    for option in options:
        succeed(*plain, "--overwrite", *option)
        contents.add((tmp_path / "plain.csv").read_bytes())
    assert len(contents) == 1 + len(options)


def test_the_command_prints_a_summary_as_json(tmp_path: Path) -> None:
    done = run("simulate", "-o", tmp_path / "a.csv", "--particles", 5, "--frames", 4, "--json")
    summary = json.loads(done.stdout)
    assert (summary["detections"], summary["links"], summary["true_tracks"]) == (20, 15, 5)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--miss", "2"], "miss is 2.0"),
        (["--frames", "0"], "frames is 0"),
        (["--box", "1", "0", "1"], "box along y is 0.0"),
        (["--boundary", "wall"], "'wall' is not one of"),
        (["--detections", "same.csv"], "--output"),
        (["--seed", "-1"], "seed is -1"),
    ],
)
def test_wrong_usage_ends_with_2_and_no_file(here: Path, words: list[str], said: str) -> None:
    done = run("simulate", "-o", "same.csv", *words)
    assert done.exit_code == 2
    assert said in done.output
    assert not list(here.iterdir())


def test_an_output_that_exists_stays(tmp_path: Path) -> None:
    (tmp_path / "seen.csv").write_text("mine")
    done = run("simulate", "-o", tmp_path / "truth.csv", "--detections", tmp_path / "seen.csv")
    assert done.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["seen.csv"]
    assert (tmp_path / "seen.csv").read_text() == "mine"


def test_the_command_knows_all_boundaries_and_units() -> None:
    choices = {option.name: getattr(option.type, "choices", None) for option in simulate.params}
    assert tuple(choices["boundary"] or ()) == BOUNDARIES
    assert tuple(choices["unit"] or ()) == UNITS
