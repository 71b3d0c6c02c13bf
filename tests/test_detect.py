"""Detection: what must be found in simulated stacks, and how well; settings, preview and command."""

import gc
import os
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import fft

from outbid import InputError, ResourceError, SettingsError, match, open_images
from outbid.compute.processes import ProcessOfEach
from outbid.detection import detect
from outbid.detection.frames import learn_from
from outbid.detection.joint import local_maxima
from outbid.detection.preview import preview
from outbid.detection.spectrum import Filter, Modes, spectrum
from outbid.detection.transform import CosineTransform
from outbid.formats.images.labels import centroids, detect_labels
from outbid.settings.detection import DetectionSettings
from outbid.work.jobs import DetectJob

FRAMES = import_module("outbid.detection.frames")


def blob(shape: tuple[int, int, int], centre: tuple[float, float, float], sigma: float) -> NDArray:
    axes = np.ogrid[tuple(slice(0, n) for n in shape)]
    return np.exp(-sum((a - c) ** 2 for a, c in zip(axes, centre, strict=True)) / (2 * sigma**2))


@pytest.mark.smoke
@given(z=st.floats(6, 12), y=st.floats(10, 20), x=st.floats(10, 20), flat=st.booleans())
@settings(max_examples=examples(15))
def test_a_centre_between_voxels(z: float, y: float, x: float, flat: bool) -> None:
    shape = (1, 32, 32) if flat else (20, 32, 32)
    image = np.random.default_rng(0).poisson(500 + 800 * blob(shape, (0.0 if flat else z, y, x), 2.0))
    seen, _ = detect([image], DetectionSettings(radius=2 * 2**0.5 if flat else 2 * 3**0.5))
    assert len(seen) == 1
    np.testing.assert_allclose(seen.position[0], [0 if flat else z, y, x], atol=0.15)


def test_a_spot_is_found_alike_whatever_the_voxel() -> None:
    """Every second plane of a stack, with twice the plane distance, holds the same spot."""
    image = np.random.default_rng(0).poisson(100 + 60 * blob((40, 40, 40), (20, 20, 20), 3.0))
    radius = 3 * 3**0.5
    fine, _ = detect([image], DetectionSettings(radius))
    coarse, _ = detect([image[::2]], DetectionSettings(radius, spacing=(2, 1, 1)))
    np.testing.assert_allclose(coarse.position, fine.position, atol=0.2)
    np.testing.assert_allclose(coarse.features["amplitude"], fine.features["amplitude"], rtol=0.05)
    np.testing.assert_allclose(coarse.features["radius"], fine.features["radius"], rtol=0.05)
    quality = fine.features["quality"] / coarse.features["quality"]
    np.testing.assert_allclose(quality, 2**0.5, rtol=0.2)  # twice as many photons


@pytest.mark.smoke
@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=examples(40))
def test_local_maxima_against_their_definition(seed: int, flat: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (1 if flat else 3, 5, 6)).astype(np.float32)
    padded = np.pad(values, 1, constant_values=-np.inf)
    wanted = []
    for place in np.ndindex(values.shape):
        around = padded[tuple(slice(p, p + 3) for p in place)].ravel()
        here = around[13]
        if here > 1 and (around[:13] < here).all() and (around[14:] <= here).all():
            wanted.append(list(place))
    assert sorted(local_maxima(values, 1.0).tolist()) == wanted


@pytest.mark.smoke
@pytest.mark.parametrize("shape", [(1, 64, 64), (1, 32, 32), (12, 69, 69), (6, 40, 40)])
def test_the_response_to_noise_has_variance_1(shape: tuple[int, int, int]) -> None:
    """The power of few modes is not too high: it would hide dim spots of small frames."""
    noise = 2 * np.random.default_rng(0).normal(size=shape).astype(np.float32)
    modes, dct = Modes(shape), CosineTransform()
    transform = dct.forward(noise)
    sigma = np.array([0.8 if shape[0] > 1 else 0, 0.9, 0.9])
    filter_ = Filter(modes, sigma, spectrum(modes, transform), dct)
    assert 0.9 < filter_.respond(transform).std() < 1.05


def test_noise_alone_gives_no_spots(caplog: pytest.LogCaptureFixture) -> None:
    noise = np.random.default_rng(0).poisson(100, (3, 12, 64, 64)).astype(np.uint16)
    assert len(detect(noise, DetectionSettings(radius=3))[0]) <= 1
    assert len(detect(noise, DetectionSettings())[0]) == 0
    assert caplog.text == "", "no spots of the other sign either"


@pytest.mark.parametrize("place", [(60, 60), (1150, 1130), (600, 600), (40, 1160)])
def test_one_spot_in_a_large_frame(place: tuple[int, int]) -> None:
    """The radius is estimated from a part of the frame: the part that has the spot."""
    rng = np.random.default_rng(0)
    image = rng.poisson(100 + 60 * blob((1, 1200, 1200), (0, *place), 4)).astype(np.uint16)
    seen, used = detect([image], DetectionSettings())
    assert len(seen) == 1
    np.testing.assert_allclose(seen.position[0, 1:], place, atol=0.5)
    assert used.radius is not None
    assert 4 < used.radius < 8


@pytest.mark.smoke
def test_neither_workers_nor_chunks_change_a_result() -> None:
    rng = np.random.default_rng(0)
    light = [50 + 100 * blob((8, 48, 50), (4, 20, x), 2) for x in (10, 20, 25, 30, 40)]
    movie = [rng.poisson(each).astype(np.uint16) for each in light]
    alone, _ = detect(movie, DetectionSettings(radius=3), workers=1)
    assert set(alone.frame.tolist()) == set(range(5))
    for workers in (2, 4, 9):
        together, _ = detect(iter(movie), DetectionSettings(radius=3), workers=workers)
        beside, _ = detect(movie, DetectionSettings(radius=3), workers=workers)
        assert beside.position.tobytes() == alone.position.tobytes()
        assert together.frame.tobytes() == alone.frame.tobytes()


def test_spots_about_a_lattice_are_no_pattern_of_the_light() -> None:
    """Their power is in few modes, as that of stripes: where those were left out, none was found."""
    rng = np.random.default_rng(0)
    places = np.insert(np.argwhere(np.ones((8, 8))) * 25.0 + 12, 0, 0, axis=1)
    places[:, 1:] += rng.uniform(-1, 1, (64, 2))
    light = 50 + sum(60 * blob((1, 200, 200), place, 2.5) for place in places)
    seen, _ = detect([rng.poisson(light)], DetectionSettings())
    assert len(match(seen.position, places, 2.0).source) >= 0.95 * max(len(places), len(seen))


@pytest.mark.parametrize(
    ("planes", "wide", "height"), [(2, 1.5, 60.0), (1, 0.7, 150.0)], ids=["two planes", "narrow spots"]
)
def test_few_planes_and_narrow_spots_are_searched_for_spots(planes: int, wide: float, height: float) -> None:
    """Two planes were taken for bodies, and narrow spots for hot pixels."""
    rng, side, true = np.random.default_rng(3), 160, 0
    y, x = np.ogrid[:side, :side]
    frames = []
    for _ in range(3):
        places = np.stack(np.meshgrid(*[np.arange(10, side - 8, 20)] * 2), axis=-1).reshape(-1, 2)
        places = places + rng.uniform(-3, 3, places.shape)
        z, light = np.arange(planes)[:, None, None], np.zeros((planes, side, side))
        for a, b in places:
            deep = np.exp(-((z - rng.uniform(0, planes - 1)) ** 2) / 2)
            light += deep * np.exp(-((y - a) ** 2 + (x - b) ** 2) / (2 * wide**2))
        frames.append(rng.poisson(100 + height * light).astype(float))
        true += len(places)
    seen, _ = detect(frames, DetectionSettings())
    assert 0.97 * true <= len(seen) <= 1.05 * true


@pytest.mark.smoke
def test_tiles_have_the_spots_of_the_whole_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    places = rng.uniform((0, 0, 0), (0, 320, 300), (90, 3))
    light = 60 + sum(80 * blob((1, 320, 300), (0, y, x), 1.6) for _, y, x in places)
    image = rng.poisson(light * np.linspace(1, 2, 300)).astype(np.uint16)
    whole, used = detect([image], DetectionSettings())
    monkeypatch.setattr("outbid.detection.spots.LARGE", 130**2)
    one, three = (detect([image], used, workers=workers)[0] for workers in (1, 3))
    assert one.position.tobytes() == three.position.tobytes()
    assert len(match(one.position, whole.position, 0.2).source) >= 0.95 * max(len(one), len(whole)) > 60


def test_processes_find_the_same_bytes_and_hand_on_what_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    movie, used = [speckled(k) for k in range(3)], DetectionSettings(3)
    threads, _ = detect(movie, used, workers=1)
    monkeypatch.setattr(FRAMES, "_FEW", 1)
    monkeypatch.setattr(FRAMES, "_WORTH", 1)
    monkeypatch.setattr(import_module("outbid.detection.spots"), "spots_of_frame", None)  # in this process
    apart, _ = detect(movie, used, workers=2)
    assert len(apart) > 5
    assert apart.position.tobytes() == threads.position.tobytes()
    assert all((apart.features[name] == values).all() for name, values in threads.features.items())
    with ProcessOfEach() as processes:
        assert processes.call(os.getpid) == processes.call(os.getpid) != os.getpid()
        with pytest.raises(ValueError, match="invalid literal"):
            processes.call(int, "x")
        with pytest.raises(ChildProcessError):
            processes.call(os._exit, 1)


def speckled(seed: int = 0) -> NDArray:
    rng = np.random.default_rng(seed)
    light = sum(
        60 * rng.random() * blob((8, 60, 70), rng.uniform((0, 0, 0), (8, 60, 70)), 2) for _ in range(25)
    )
    return rng.poisson(50 + light).astype(np.uint16)


@pytest.mark.parametrize("radius", [3.0, None])
@pytest.mark.parametrize("threshold", [None, 4.0, 8.0, 10.0, -1.0])
def test_a_preview_shows_what_will_be_found(radius: float | None, threshold: float | None) -> None:
    movie = [speckled(0)[:, ::2, ::2], speckled(1)[:, ::2, ::2]]
    found, used = detect(movie, DetectionSettings(radius, threshold=threshold, spacing=(2, 1, 1)))
    learned = learn_from(
        lambda numbers: [movie[k] for k in numbers], 2, DetectionSettings(radius, spacing=(2, 1, 1))
    )
    seen = preview(movie[1], DetectionSettings(radius, spacing=(2, 1, 1)), learned=learned)
    assert (seen.settings.radius, seen.settings.radius_z) == (used.radius, used.radius_z)
    shown = seen.position[: seen.count_above(seen.automatic if threshold is None else threshold)]
    assert len(shown) > 0
    assert sorted(shown.tolist()) == sorted(found.position[found.rows_of(1)].tolist())
    assert (np.diff(seen.quality) <= 0).all()
    both = preview(movie, DetectionSettings(radius, spacing=(2, 1, 1)))
    assert sorted(both.position[both.frame == 1].tolist()) == sorted(seen.position.tolist())
    assert both.false_above(both.quality[-1] / 2) == pytest.approx((1 - both.probability).sum())


def test_a_preview_is_a_table_with_the_choice_marked() -> None:
    seen = preview(speckled(), DetectionSettings(3))
    steps = seen.thresholds()
    assert seen.automatic in steps
    assert (np.diff(seen.count_above(steps)) <= 0).all()
    assert (np.diff(seen.false_above(steps)) <= 0).all()
    marked = [line for line in seen.table().splitlines() if "automatic" in line]
    assert len(marked) == 1
    assert int(marked[0].split()[1]) == seen.count_above(seen.automatic)
    assert "given" in preview(speckled(), DetectionSettings(3, threshold=5)).table()
    for nothing in (np.zeros((1, 9, 9)), np.full((3, 9, 9), 7)):
        empty = preview(nothing, DetectionSettings())
        assert len(empty.quality) == 0
        assert empty.count_above(0) == 0
        assert "0" in empty.table()


@pytest.mark.parametrize("empty", [0, 100])
def test_frames_before_the_first_spot(empty: int) -> None:
    """Of a sequence some frames are learned from; else it is the first in which something stands out."""
    noise = np.random.default_rng(8).poisson(empty, (8, 60, 70)).astype(np.uint16)
    movie = [noise, noise, speckled(0), speckled(1)]
    later, wanted = detect(iter(movie[2:]), DetectionSettings())
    seen, used = detect(iter(movie), DetectionSettings())
    assert (used.radius, used.radius_z) == (wanted.radius, wanted.radius_z)
    np.testing.assert_array_equal(seen.position, later.position)
    np.testing.assert_array_equal(seen.frame, later.frame + 2)
    whole, measured = detect(movie, DetectionSettings())
    assert measured.radius == pytest.approx(wanted.radius, rel=0.2)
    assert set(whole.frame.tolist()) == {2, 3}
    assert detect(movie[:2], DetectionSettings())[1].radius is None


@pytest.mark.smoke
def test_dark_spots_are_bright_ones_upside_down() -> None:
    image = speckled()
    bright, used = detect([image], DetectionSettings())
    dark, used_too = detect([1000 - image.astype(np.int32)], DetectionSettings(dark=True))
    assert used_too.radius == pytest.approx(used.radius, rel=0.05)
    pairs = match(dark.position, bright.position, 0.5)
    assert len(pairs.source) >= 0.9 * max(len(dark), len(bright))


@pytest.mark.parametrize("radius", [3.0, None])
def test_spots_of_the_other_sign_are_reported(radius: float | None, caplog: pytest.LogCaptureFixture) -> None:
    bright = speckled()
    upside_down = 1000 - bright.astype(np.int32)
    for image, dark, said in (
        (bright, False, ""), (bright, True, "leave --dark out"),
        (upside_down, False, "To find those: --dark"), (upside_down, True, ""),
    ):  # fmt: skip
        caplog.clear()
        settings = DetectionSettings(radius, dark=dark)
        detect([image, image], settings)
        assert len(caplog.records) == bool(said)
        assert said in caplog.text
        assert preview(image, settings).other_sign == bool(said)


def test_a_large_background_costs_no_digits() -> None:
    image = speckled().astype(np.float32)
    here, _ = detect([image], DetectionSettings(3))
    there, _ = detect([image + 2.0**20], DetectionSettings(3))
    np.testing.assert_allclose(here.position, there.position, atol=1e-9)


def test_bytes_in_foreign_order_are_the_same_numbers() -> None:
    image = speckled()
    here, _ = detect([image], DetectionSettings(3))
    there, _ = detect([image.astype(">u2")], DetectionSettings(3))
    np.testing.assert_array_equal(here.position, there.position)


def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> list[str]:
        raise RuntimeError("CuPy is not installed.")

    monkeypatch.setattr("outbid.settings.device.gpu_names", none)
    with pytest.raises(ResourceError, match="CuPy is not installed"):
        detect([speckled()], DetectionSettings(3, device="gpu"))
    monkeypatch.setattr(FRAMES, "GPU_FROM_VOXELS", 1)
    _, used = detect([speckled()], DetectionSettings(3), count=1)
    assert used.device == "cpu"


@pytest.mark.parametrize(
    ("shape", "small"), [((1, 30, 40), (1, 15, 22)), ((6, 20, 24), (4, 10, 24)), ((3, 9, 8), (1, 5, 8))]
)
def test_transforms_of_a_band_are_those_of_the_frame_cut_or_padded(
    shape: tuple[int, ...], small: tuple[int, ...]
) -> None:
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    cut, dct = tuple(slice(n) for n in small), CosineTransform()
    modes = fft.dctn(values, norm="ortho")[cut]
    np.testing.assert_allclose(dct.forward(values, small), modes, atol=1e-5)
    padded = np.zeros(shape, np.float32)
    padded[cut] = modes
    np.testing.assert_allclose(dct.back(modes, shape), fft.idctn(padded, norm="ortho"), atol=1e-5)


def test_a_gpu_that_is_too_small(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def full(*_: object) -> object:
        raise MemoryError("out of memory to allocate")

    monkeypatch.setattr("outbid.settings.device.gpu_names", lambda: ["a small one"])
    monkeypatch.setattr(FRAMES, "release_device_memory", lambda: None)
    monkeypatch.setattr("outbid.detection.gpu.search.spots_of_frames", full)
    found, used = detect([speckled()] * 2, DetectionSettings(3, device="gpu"))
    expected, _ = detect([speckled()] * 2, DetectionSettings(3, device="cpu"))
    np.testing.assert_array_equal(found.position, expected.position)
    assert used.device == "cpu", "the record states where it ended"
    assert "2 of 2 frames were searched on the CPU" in caplog.text


def test_memory_of_one_frame() -> None:
    shape = (4, 128, 128)
    noise = np.random.default_rng(0).poisson(50, shape).astype(np.uint16)

    def frames(count: int) -> Iterator[NDArray]:
        for k in range(count):
            if k % 4 == 0:  # old versions of SciPy leave cycles of objects, which Python frees at some time
                gc.collect()
            yield noise + k

    def peak(count: int) -> int:
        tracemalloc.start()
        detect(frames(count), DetectionSettings(radius=3), workers=1)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    detect([noise], DetectionSettings(radius=3))  # loads kernels
    assert peak(12) < 1.1 * peak(2)


@pytest.mark.smoke
def test_centroids_and_label_movies() -> None:
    image = np.zeros((2, 5, 6), np.uint16)
    image[:, 1:3, 2:4] = 9
    image[0, 4, 5] = 3
    seen = detect_labels([image, image * 0, image], spacing=(2, 1, 1))
    assert seen.frame.tolist() == [0, 0, 2, 2]
    assert seen.features["label"].tolist() == [3, 9, 3, 9]
    assert seen.position[:2].tolist() == [[0, 4, 5], [1, 1.5, 2.5]]
    assert seen.features["size"].tolist() == [1, 8, 1, 8]
    with pytest.raises(InputError, match="whole"):
        centroids(image + 0.5)
    with pytest.raises(InputError, match="negative"):
        centroids(np.array([[[-1]]]))


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "value"),
    [("radius", 0), ("radius", float("nan")), ("radius_z", 2), ("spacing", (1, 0, 1)), ("spacing", (1, 1)),
     ("threshold", float("inf")), ("fdr", 0), ("fdr", 1.5), ("gain", 0), ("offset", 3), ("read_noise", -1),
     ("device", "quantum")],
)  # fmt: skip
def test_settings_check_themselves(name: str, value: object) -> None:
    with pytest.raises(SettingsError):
        DetectionSettings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.smoke
def test_an_open_movie_has_its_frame_numbers_times_and_unit() -> None:
    stack = np.stack([speckled(seed) for seed in (0, 1, 2)])
    movie = replace(open_images(stack, axes="TZYX", spacing=(2, 1, 1)), missing=(1,), interval=2.5)
    seen, used = detect(movie)
    alone, _ = detect([stack[0], stack[2]], DetectionSettings(spacing=(2, 1, 1)))
    np.testing.assert_array_equal(seen.position, alone.position)
    assert set(seen.frame.tolist()) == {0, 2}
    assert seen.features["time"].tolist() == (2.5 * seen.frame).tolist()
    assert (seen.unit, used.spacing) == (movie.unit, movie.spacing)
    job, _ = DetectJob().detect(movie)
    assert seen.position.tobytes() == job.position.tobytes()
    assert list(seen.features) == list(job.features)


def test_frames_that_make_no_sense() -> None:
    for frame in (np.zeros((4, 4)), np.zeros((1, 4, 4), complex), np.zeros((0, 4, 4))):
        with pytest.raises(InputError, match="Frame 0"):
            detect([frame], DetectionSettings(radius=2))
    with pytest.raises(InputError, match="Frame 2"):
        detect([np.zeros((1, 9, 9)), np.ones((1, 9, 9)), np.zeros((4, 4))], DetectionSettings())
    for value in (0.0, np.nan, 1e300):
        assert len(detect([np.full((1, 9, 9), value)] * 2, DetectionSettings())[0]) == 0
    assert len(detect([], DetectionSettings())[0]) == 0
