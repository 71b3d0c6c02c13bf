"""Detection of a running acquisition is learned again when its frames change, and is not when they do not."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from recordings import write_frame
from scipy.spatial import cKDTree

from outbid import DetectionSettings, open_images, read_detections
from outbid.watching.account import How
from outbid.watching.light import Light
from outbid.watching.seeing import Ahead, Seer, numbered
from outbid.watching.watch import watch

SIDE, SPOTS, STRONG = 128, 40, {"height": 120.0, "ground": 30.0, "wide": 1.3}


def frames(
    count: int, *, height: float, ground: float, wide: float, gain: float = 1.0, seed: int = 0
) -> tuple[list[NDArray[np.uint16]], list[NDArray[np.float64]]]:
    """Images (1, Y, X) of a camera, and the true places of their spots."""
    rng, images, places = np.random.default_rng(seed), [], []
    y, x = np.ogrid[:SIDE, :SIDE]
    for _ in range(count):
        place = rng.uniform(6, SIDE - 6, (SPOTS, 2))
        light = ground + sum(
            height * np.exp(-((y - a) ** 2 + (x - b) ** 2) / (2 * wide**2)) for a, b in place
        )
        image = 100 + gain * rng.poisson(light) + rng.normal(0, 2, (SIDE, SIDE))
        images.append(image.clip(0).round().astype(np.uint16)[None])
        places.append(place)
    return images, places


def f1(found: list[NDArray[np.float64]], true: list[NDArray[np.float64]]) -> float:
    """Of positions (y, x) within 1.5 pixels of true ones."""
    right = sum(
        len({*nearest[apart < 1.5].tolist()})
        for a, b in zip(found, true, strict=True)
        for apart, nearest in [cKDTree(b).query(a)]
    )
    return 2 * right / sum(len(a) + len(b) for a, b in zip(found, true, strict=True))


def recorded(*parts: tuple[int, dict[str, float]]) -> tuple[list[NDArray[np.uint16]], list[NDArray]]:
    """Images and places of parts of a movie, one after the other."""
    made = [frames(count, **how, seed=k) for k, (count, how) in enumerate(parts)]
    return [image for images, _ in made for image in images], [
        place for _, places in made for place in places
    ]


def seen(*parts: tuple[int, dict[str, float]]) -> tuple[Seer, float]:
    """What has followed these frames, and its F1 in the last four."""
    images, places = recorded(*parts)
    seer = Seer(open_images(images[0], axes="ZYX"), DetectionSettings(), 1)
    assert seer.learn(images.__getitem__, range(8))
    found = []
    for k, image in enumerate(images):
        one = numbered(seer.found(image), k)
        seer.compare(images.__getitem__, k, k, one)
        found.append(one.position[:, 1:])
    return seer, f1(found[-4:], places[-4:])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "count", "again"),
    [({"wide": 2.6, "height": 60.0}, 12, 23), ({"wide": 1.95}, 28, 37), ({"gain": 4.0}, 12, 23)],
    ids=["focus lost", "nearly in focus", "camera"],
)
def test_what_changes_is_learned_again(change: dict[str, float], count: int, again: int) -> None:
    """Without it F1 is .17 and .85 out of focus. Nearly in focus, single frames look as before."""
    seer, right = seen((16, STRONG), (count, STRONG | change))
    assert seer.again == [again]
    assert right > 0.93


@pytest.mark.slow
@pytest.mark.parametrize("light", [(900.0, 400.0), (40.0, 10.0)], ids=["lamp", "bleached"])
def test_more_or_less_light_alone_does_not_matter(light: tuple[float, float]) -> None:
    """Noise is a function of light, and the filter that of each frame."""
    _, right = seen((16, STRONG), (12, STRONG | {"height": light[0], "ground": light[1]}))
    assert right > 0.93


@pytest.mark.smoke
def test_frames_that_stay_alike_are_not_learned_again() -> None:
    seer, right = seen((32, STRONG))
    assert seer.again == []
    assert right > 0.95


def test_frames_detected_ahead_are_those_of_the_model_and_of_the_image() -> None:
    """A model that was learned again, and a file that was written again, count."""
    images, _ = recorded((8, STRONG), (8, STRONG | {"wide": 2.6, "height": 60.0}))
    seer, ahead = Seer(open_images(images[0], axes="ZYX"), DetectionSettings(), 1), Ahead(2)
    assert seer.learn(images.__getitem__, range(8))
    before = seer.found(images[12]).position
    ahead.begin(seer, images.__getitem__, [10, 11, 12])
    assert np.array_equal(ahead.found(seer, 10, images[10]).position, seer.found(images[10]).position)
    assert np.array_equal(ahead.found(seer, 11, images[3]).position, seer.found(images[3]).position)
    ahead.begin(seer, images.__getitem__, [12, 13])
    assert seer.learn(images.__getitem__, range(8, 16))
    seer.again.append(11)
    after = ahead.found(seer, 12, images[12]).position
    assert np.array_equal(after, seer.found(images[12]).position)
    assert not np.array_equal(before, after)
    ahead.close()


def test_seven_frames_that_differ_are_not_enough_nor_are_both_sides() -> None:
    light = Light()
    numbers = [50.0] * 16 + [90.0] * 7 + [50.0] + [90.0, 10.0] * 8 + [0.0] * 8
    changes = []
    for k, number in enumerate(numbers):
        light.add_row(k, [number, 2.0, 1.0])
        changes.append(light.change())
    assert [k for k, change in enumerate(changes) if change] == [46, 47]
    assert changes[47] == "number 50 -> 0"
    assert light.latest == list(range(40, 48))
    again = Light()
    again.restore(light.state())
    assert again.change() == light.change()


def test_few_spots_by_chance_are_no_change() -> None:
    rng, light = np.random.default_rng(0), Light()
    for k in range(2000):
        light.add_row(k, [float(rng.poisson(4)), float(rng.normal(2, 0.1)), float(rng.normal(1, 0.1))])
        assert not light.change()


@pytest.mark.slow
def test_a_lamp_that_is_switched_on_later_and_a_focus_that_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While the lamp is off, a frame is looked at once, and nothing is learned."""
    dark = {"height": 0.0, "ground": 0.0, "wide": 1.3}
    images, places = recorded((10, dark), (18, STRONG), (20, STRONG | {"wide": 2.6, "height": 60.0}))
    folder = tmp_path / "images"
    folder.mkdir()
    for k, image in enumerate(images):
        write_frame(folder, k, image)
    how = How(until=len(images) - 1, poll=0.02, learn=6, keep=True)
    record = watch(folder, tmp_path / "tracks.parquet", how=how)
    again = record["live"]["detection_learned_again"][-1]
    assert 35 <= again <= 43
    assert f"Frame {again}: the latest frames differ" in caplog.text
    live = read_detections(tmp_path / "tracks.live.parquet")
    found = [live.position[live.rows_of(k)][:, 1:] for k in range(48)]
    assert all(len(each) == 0 for each in found[:10])
    assert f1(found[12:28], places[12:28]) > 0.95
    assert f1(found[again + 1 :], places[again + 1 :]) > 0.93
