"""What `outbid measure` estimates on simulated motions: right values, and intervals that hold them."""

import dataclasses

import numpy as np
import pytest
from scipy.linalg import toeplitz

import outbid
from outbid import Detections, Tracks
from outbid.measuring import Measures
from outbid.measuring.draws import variants_of
from outbid.measuring.edge import confidence

TRACKS, FRAMES = 300, 25
NOISE = 0.3


def moving(step: np.ndarray, noise: float, rng: np.random.Generator) -> Tracks:
    """Tracks of steps (T, F - 1, 2), with localisation error, far from each other."""
    count, frames = len(step), step.shape[1] + 1
    place = np.concatenate([np.zeros((count, 1, 2)), np.cumsum(step, axis=1)], axis=1)
    place += rng.normal(0, noise, place.shape)
    frame = np.repeat(np.arange(frames), count)
    links = np.column_stack([np.arange(count * (frames - 1)), np.arange(count, count * frames)])
    return Tracks(Detections.from_table(frame, place.transpose(1, 0, 2).reshape(-1, 2)), links)


def fractional(exponent: float, rng: np.random.Generator, frames: int = FRAMES) -> np.ndarray:
    """Steps of fractional Brownian motion with a mean square of 1 along each axis."""
    row = np.diff(np.abs(np.arange(-1.0, frames)) ** exponent, 2) / 2
    factor = np.linalg.cholesky(toeplitz(row))
    return np.einsum("ij,tja->tia", factor, rng.normal(size=(TRACKS, frames - 1, 2)))


def persistent(time: float, rng: np.random.Generator, parts: int = 16) -> np.ndarray:
    """Steps of Fürth's walk, integrated in parts of an interval."""
    kept = np.exp(-1 / (parts * time))
    velocity = np.empty((TRACKS, (FRAMES - 1) * parts + 1, 2))
    velocity[:, 0] = rng.normal(size=(TRACKS, 2))
    for k in range(1, velocity.shape[1]):
        kick = rng.normal(size=(TRACKS, 2))
        velocity[:, k] = kept * velocity[:, k - 1] + np.sqrt(1 - kept**2) * kick
    middle = (velocity[:, 1:] + velocity[:, :-1]) / (2 * parts)
    return middle.reshape(TRACKS, FRAMES - 1, parts, 2).sum(axis=2)


def value_and_error(found: Measures, name: str) -> tuple[float, float]:
    group = found.groups.to_pandas().iloc[0]
    value, error = (next(group[c] for c in group.index if c.startswith(n)) for n in (name, f"{name}_error"))
    return value, error


def held(found: Measures, name: str, true: float) -> float:
    """Share of the tracks whose interval of one standard error holds the true value."""
    table = found.to_dataframe()
    value, error = (table[next(c for c in table if c.startswith(n))] for n in (name, f"{name}_error"))
    return float(((value - true).abs() <= error).mean())


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, NOISE, 1.0])
def test_diffusion_with_localisation_error(noise: float) -> None:
    rng = np.random.default_rng(1)
    found = outbid.measure(moving(rng.normal(size=(TRACKS, FRAMES - 1, 2)), noise, rng))
    value, error = value_and_error(found, "diffusion")
    assert abs(value - 0.5) < 3 * error < 0.06
    assert 0.60 < held(found, "diffusion", 0.5) < 0.76
    seen = found.groups.to_pandas().localisation_error_x_px[0]
    assert seen == pytest.approx(noise, abs=0.05 if noise else 0.2)


def test_diffusion_of_short_tracks_is_estimated_better_than_by_the_covariance_estimator() -> None:
    """The localisation error of all tracks together makes up for short ones (Vestergaard et al. 2014)."""
    rng = np.random.default_rng(2)
    tracks = moving(rng.normal(size=(TRACKS, 6, 2)), NOISE, rng)
    place = tracks.detections.position[:, 1:].reshape(7, TRACKS, 2)
    step = np.diff(place, axis=0)
    covariance = (np.square(step).mean(axis=0) / 2 + (step[1:] * step[:-1]).mean(axis=0)).mean(axis=1)
    found = outbid.measure(tracks).to_dataframe().diffusion_px2_per_frame
    assert found.std() < 0.75 * covariance.std()
    assert found.mean() == pytest.approx(0.5, abs=0.05)


def test_motion_blur_needs_no_exposure_time() -> None:
    """Positions averaged over the whole interval: plain steps would give two thirds of D."""
    rng = np.random.default_rng(3)
    fine = np.cumsum(rng.normal(0, 1 / np.sqrt(32), (TRACKS, FRAMES * 32, 2)), axis=1)
    place = fine.reshape(TRACKS, FRAMES, 32, 2).mean(axis=2)
    found = outbid.measure(moving(np.diff(place, axis=1), 0.0, rng))
    value, error = value_and_error(found, "diffusion")
    assert abs(value - 0.5) < 3 * error < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [0.6, 1.0, 1.4])
def test_anomalous_exponents(exponent: float) -> None:
    rng = np.random.default_rng(4)
    found = outbid.measure(moving(fractional(exponent, rng), NOISE, rng))
    value, error = value_and_error(found, "exponent")
    assert abs(value - exponent) < 3 * error < 0.12
    assert 0.58 < held(found, "exponent", exponent) < 0.78


@pytest.mark.slow
@pytest.mark.parametrize("time", [2.0, 5.0])
def test_persistence_times(time: float) -> None:
    rng = np.random.default_rng(5)
    found = outbid.measure(moving(persistent(time, rng), 0.1, rng))
    value, error = value_and_error(found, "persistence")
    assert abs(value - time) < 3 * error < 0.2 * time
    assert 0.58 < held(found, "persistence", time) < 0.85


def test_diffusion_with_localisation_errors_has_no_persistence() -> None:
    rng = np.random.default_rng(6)
    found = outbid.measure(moving(rng.normal(size=(TRACKS, FRAMES - 1, 2)), 0.2, rng))
    assert value_and_error(found, "persistence")[0] < 0.3


@pytest.mark.parametrize("seed", range(3))
def test_diffusion_has_no_persistence(seed: int) -> None:
    """Its interval reaches 0; blur and a short persistence are the same to frames."""
    rng = np.random.default_rng(seed)
    found = outbid.measure(moving(rng.normal(size=(TRACKS, FRAMES - 1, 2)), 0.0, rng))
    value, error = value_and_error(found, "persistence")
    assert found.groups["persistence_low_95_frame"][0].as_py() == 0
    assert value <= 2 * error < 1


def limits(found: Measures) -> np.ndarray:
    """Low and high ends of the 68 % and the 95 % interval of the persistence time."""
    columns = [
        name for name in found.groups.column_names if name.startswith(("persistence_low", "persistence_high"))
    ]
    ends = [found.groups[name][0].as_py() for name in columns]
    return np.array([np.inf if end is None else end for end in ends])


@pytest.mark.slow
@pytest.mark.parametrize("time", [0.0, 0.5, 2.0])
def test_intervals_of_persistence_hold_the_true_time(time: float) -> None:
    """68 and 95 %, within three binomial standard errors, at the edge and far from it."""
    movies, held = 40, np.zeros(2)
    for seed in range(movies):
        rng = np.random.default_rng(100 + seed)
        steps = persistent(time, rng) if time else rng.normal(size=(TRACKS, FRAMES - 1, 2))
        low, high, lowest, highest = limits(outbid.measure(moving(steps[:100], 0.1, rng)))
        held += low <= time <= high, lowest <= time <= highest
    assert 0.46 < held[0] / movies < 0.90
    assert held[1] / movies > 0.84


@pytest.mark.parametrize("true", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("level", [0.68, 0.95])
def test_intervals_at_an_edge_hold_normal_values(true: float, level: float) -> None:
    drawn = np.random.default_rng(1).normal(true, 1, 100_000)
    best = np.maximum(drawn, 0)
    lost, edge = (np.square(drawn - at) - np.square(drawn - best) for at in (true, 0.0))
    held = (confidence(lost, edge, true < best) <= level).mean()
    assert level - 0.006 < held < level + (0.09 if 0 < true < 2 else 0.006)


@pytest.mark.slow
def test_confinement_and_straightness_distinguish_motions() -> None:
    rng = np.random.default_rng(7)
    free = moving(rng.normal(size=(TRACKS, FRAMES - 1, 2)), 0.0, rng)
    caged = np.zeros((TRACKS, FRAMES, 2))
    for k in range(1, FRAMES):
        caged[:, k] = 0.6 * caged[:, k - 1] + rng.normal(size=(TRACKS, 2))
    table = {
        "free": outbid.measure(free).groups.to_pandas().iloc[0],
        "caged": outbid.measure(moving(np.diff(caged, axis=1), 0.0, rng)).groups.to_pandas().iloc[0],
        "ahead": outbid.measure(moving(persistent(8.0, rng), 0.0, rng)).groups.to_pandas().iloc[0],
    }
    assert table["ahead"].confinement < table["free"].confinement < 2 < table["caged"].confinement
    assert table["caged"].straightness < table["free"].straightness < table["ahead"].straightness


# ---------------------------------------------------------------- errors that include linking


def crossing(probability: float) -> Tracks:
    """Pairs of diffusing particles that are one spot apart in the middle frame, where links are doubtful."""
    rng = np.random.default_rng(8)
    tracks = moving(rng.normal(size=(TRACKS, FRAMES - 1, 2)), 0.0, rng)
    place = tracks.detections.position.reshape(FRAMES, TRACKS, 3)
    place[:, :, 1:] -= place[FRAMES // 2, :, 1:]  # all meet there, far from other pairs
    place[:, :, 2] += 1000.0 * (np.arange(TRACKS) // 2)
    chance = np.ones((FRAMES - 1, TRACKS))
    chance[FRAMES // 2] = probability
    seen = Detections(tracks.detections.frame, place.reshape(-1, 3))
    return Tracks(seen, tracks.links, link_probability=chance.ravel())


def test_errors_include_linking_and_say_where_it_dominates() -> None:
    sure, doubtful = outbid.measure(crossing(1.0)), outbid.measure(crossing(0.5))
    assert "linking adds no errors" in sure.remarks[0]
    assert "150 of 7,200 links are expected to be wrong" in doubtful.remarks[0]
    one, two = sure.to_dataframe(), doubtful.to_dataframe()
    assert (two.diffusion_error_px2_per_frame >= one.diffusion_error_px2_per_frame * 0.99).mean() > 0.95
    assert two.linking_share.median() > 0.05
    assert two.no_wrong_link.round(6).eq(0.5).all()
    assert one.no_wrong_link.eq(1).all()


@pytest.mark.parametrize(("straight", "exchanged"), [(True, 0.0), (False, 0.5)])
def test_draws_exchange_futures_as_often_as_steps_allow(straight: bool, exchanged: float) -> None:
    """Tracks that keep their direction exchange a detection where they cross, and those that diffuse all."""
    rng, frames, middle = np.random.default_rng(3), 21, 10
    step = rng.normal(0, 1.0, (60, frames - 1, 2)) * (0.05 if straight else 1.0)
    step += np.tile([[[-1.0, 0.0]], [[1.0, 0.0]]], (30, 1, 1)) if straight else 0.0
    place = np.concatenate([np.zeros((60, 1, 2)), np.cumsum(step, axis=1)], axis=1)
    place -= place[:, [middle]]
    place[:, :, 1] += 1000.0 * (np.arange(60) // 2)[:, None]
    place[1::2, middle, 1] += 0.01
    frame = np.repeat(np.arange(frames), 60)
    seen = Detections.from_table(frame, place.transpose(1, 0, 2).reshape(-1, 2))
    tracks = Tracks.from_track_ids(seen, np.tile(np.arange(60), frames))
    doubtful = np.isin(frame[tracks.links[:, 0]], [middle - 1, middle])
    tracks = dataclasses.replace(tracks, link_probability=np.where(doubtful, 0.5, 1.0))
    found = variants_of(tracks, rng)
    ends = found.rows[np.stack([found.start[:-1], found.start[1:] - 1], axis=1)] % 60  # who is it there?
    whole = np.diff(found.start) == frames
    share = found.drawn[:, whole & (ends[:, 0] != ends[:, 1])].sum() / found.drawn[:, whole].sum()
    detection = found.rows[found.start[:-1][whole] + middle] % 60 != ends[whole, 0]
    assert share == pytest.approx(exchanged, abs=0.1)
    assert found.drawn[:, whole][:, detection].sum() / found.drawn[:, whole].sum() == pytest.approx(
        0.5, abs=0.1
    )


@pytest.mark.smoke
def test_tracks_of_other_programs_say_that_errors_exclude_linking() -> None:
    tracks = dataclasses.replace(crossing(0.5), link_probability=None)
    found = outbid.measure(tracks)
    assert "errors exclude those of linking" in found.remarks[-1]
    assert found.to_dataframe().linking_share.isna().all()


@pytest.mark.slow
def test_draws_undo_the_bias_of_the_best_links() -> None:
    """The best matching makes steps too short; draws by the links' probabilities do so less."""
    rng = np.random.default_rng(9)
    count, frames, side = 150, 30, 12.2  # in spacings: kappa 0.2 in the plane
    step = rng.normal(0, 0.2, (count, frames - 1, 2))
    place = np.cumsum(np.concatenate([rng.uniform(0, side, (count, 1, 2)), step], axis=1), axis=1) % side
    frame = np.tile(np.arange(frames), (count, 1))
    run = outbid.track(Detections.from_table(frame.ravel(), place.reshape(-1, 2)))
    best = dataclasses.replace(run.tracks, link_probability=None)
    plain, drawn = (value_and_error(outbid.measure(each), "diffusion")[0] for each in (best, run.tracks))
    assert plain < 0.97 * drawn
    assert drawn == pytest.approx(0.02, rel=0.08)


# ---------------------------------------------------------------- which motion


def confined(time: float, rng: np.random.Generator) -> np.ndarray:
    """Steps of particles that are drawn back to a place within a time."""
    kept = np.exp(-1 / time)
    place = np.empty((TRACKS, FRAMES, 2))
    place[:, 0] = rng.normal(size=(TRACKS, 2))
    for k in range(1, FRAMES):
        place[:, k] = kept * place[:, k - 1] + np.sqrt(1 - kept**2) * rng.normal(size=(TRACKS, 2))
    return np.diff(place, axis=1)


MOTIONS = {
    "diffusion": (lambda rng: rng.normal(size=(TRACKS, FRAMES - 1, 2)), 0.5),
    "anomalous": (lambda rng: fractional(0.5, rng), None),
    "persistent": (lambda rng: persistent(3.0, rng), 3.0),
    "confined": (lambda rng: confined(3.0, rng), 1 / 3),
}
"""Steps of each motion, and the diffusion coefficient it has."""


@pytest.mark.slow
@pytest.mark.parametrize("name", MOTIONS)
def test_the_chosen_motion_is_that_of_the_steps_and_its_curve_passes_through_the_points(name: str) -> None:
    steps, due = MOTIONS[name]
    rng = np.random.default_rng(12)
    found = outbid.measure(moving(steps(rng), NOISE * 0.5, rng))
    group = found.groups.to_pandas().iloc[0]
    assert group.motion == name
    assert group.motion_weight > 0.8
    value, error = value_and_error(found, "diffusion")
    if due is None:
        assert np.isnan(value)
        assert "no diffusion coefficient" in " ".join(found.remarks)
    else:
        assert abs(value - due) < 3.5 * error < 0.35 * due
    curves = found.curves.to_pandas()
    points, fit = (curves[curves.curve == kind].set_index("x") for kind in ("msd", "msd_fit"))
    apart = (fit.value - points.value).abs() / points.error
    assert len(points) >= 12
    assert (apart < 3).all()


@pytest.mark.slow
def test_a_fit_that_misses_the_points_is_said() -> None:
    """Persistent along x, confined along y: no motion is that of both."""
    rng = np.random.default_rng(13)
    steps = persistent(5.0, rng)
    steps[..., 1] = confined(3.0, rng)[..., 1]
    mixed = outbid.measure(moving(steps, 0.05, rng)).remarks
    assert any("misses the mean square displacement" in remark for remark in mixed)
    alike = outbid.measure(moving(persistent(5.0, rng), 0.05, rng)).remarks
    assert not any("misses" in remark for remark in alike)
