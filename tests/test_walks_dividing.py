"""Simulated divisions: cycle times, daughters, lineages in the truth; and cycles measured with censoring."""

import numpy as np
import pytest
from commands import succeed

import outbid
from outbid.errors import SettingsError
from outbid.simulate.motions import BrownianWalk
from outbid.simulate.walks import WalkSettings, next_snapshot, snapshots, walk

DIVIDING = WalkSettings(
    BrownianWalk(0.0), 40, 60, (99.0, 99.0, 99.0), "open", division_rate=0.05, daughter_distance=2.0, seed=3
)


@pytest.fixture(scope="module")
def truth() -> outbid.Tracks:
    return walk(DIVIDING)


@pytest.mark.smoke
def test_each_division_has_two_daughters_beside_their_mother(truth: outbid.Tracks) -> None:
    source, target = truth.links.T
    mothers = np.flatnonzero(truth.successors == 2)
    assert len(mothers) > 100
    for mother in mothers[:50]:
        one, other = target[source == mother]
        place = truth.detections.position
        assert np.linalg.norm(place[one] - place[other]) == pytest.approx(2.0)
        assert (place[one] + place[other]) / 2 == pytest.approx(place[mother])
        assert truth.detections.frame[one] == truth.detections.frame[mother] + 1


@pytest.mark.smoke
def test_particles_double_in_a_cycle() -> None:
    count = [len(now.track) for now in snapshots(DIVIDING)]
    growth = np.log(count[-1] / count[20]) / 39  # per frame
    assert 0.6 * 0.05 * np.log(2) < growth < 1.5 * 0.05 * np.log(2)


def test_cycle_times_have_their_mean_and_spread() -> None:
    """Of the first generation that lies whole in the movie: of later ones long cycles do not end in it."""
    tracks = walk(WalkSettings(BrownianWalk(0.0), 300, 90, (99.0, 99.0, 99.0), "open", division_rate=0.05))
    table = outbid.measure(tracks).to_dataframe()
    early = table[(table.generation == 1) & (table.start_frame < 25)].cycle_time_frame
    assert early.notna().mean() > 0.99
    assert early.mean() == pytest.approx(20, abs=1)
    assert early.std() == pytest.approx(6, abs=1.2)


def test_the_median_cycle_counts_those_that_did_not_end() -> None:
    """In a movie of two cycles; the median of complete cycles alone is too short."""
    tracks = walk(WalkSettings(BrownianWalk(0.0), 400, 40, (99.0,) * 3, "open", division_rate=0.05, seed=1))
    found = outbid.measure(tracks)
    group = found.groups.to_pandas().iloc[0]
    due = 19.4  # of a gamma distribution of mean 20 and standard deviation 6
    assert abs(group.cycle_time_median_frame - due) < max(3 * group.cycle_time_median_error_frame, 1.0)
    complete = found.to_dataframe().cycle_time_frame.median()
    assert complete < group.cycle_time_median_frame - 0.8


def test_a_snapshot_determines_the_next_one() -> None:
    every = list(snapshots(DIVIDING))
    for now, after in zip(every[20:24], every[21:25], strict=True):
        again = next_snapshot(DIVIDING, now)
        assert (again.position == after.position).all()
        assert (again.track == after.track).all()
        assert (again.mother == after.mother).all()


@pytest.mark.parametrize("name", ["division_rate", "cycle_spread", "daughter_distance"])
def test_values_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        WalkSettings(BrownianWalk(0.1), 5, 5, (9.0, 9.0, 9.0), **{name: -1.0})


def test_lineages_from_the_shell_are_scored(tmp_path) -> None:
    truth, seen = tmp_path / "truth.csv", tmp_path / "seen.csv"
    options = ("--particles", 30, "--frames", 30, "--division-rate", 0.04, "--daughter-distance", 2)
    succeed("simulate", "-o", truth, "--detections", seen, "--miss", 0.05, "--step", 0.1, *options)
    tracks = outbid.read_tracks(truth)
    divisions = int((tracks.successors == 2).sum())
    assert divisions > 10
    scores = outbid.score(tracks, tracks)
    assert scores.values["division_f1"] == 1
