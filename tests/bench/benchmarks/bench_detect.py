"""CPU seconds of detection on one core: of learning a movie, and then of a frame, beside peers.

Movies of Gaussian spots of radius 3 and SNR 5 on light that doubles across the frame, nothing set. The peers
are SciPy's `gaussian_laplace` with its maxima, at the width that was found, and trackpy's `locate` where it
is installed. All run in a process of one thread.

`python bench_detect.py --cores 16` measures megavoxels a second of wall time instead: of one thread, of so
many threads, and of so many threads with a process each, which are started within the time. `bound` is what
so many processes reach that have nothing to do with each other: cores share memory and clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from math import prod, sqrt
from typing import Any
from unittest.mock import patch

import measure
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

from outbid import DetectionSettings
from outbid.detection import frames as searched
from outbid.detection.frames import detect_frames, learn_from

MOVIES = {
    "256²": ((1, 256, 256), 84), "512²": ((1, 512, 512), 334), "1024²": ((1, 1024, 1024), 1337),
    "20 x 256²": ((20, 256, 256), 325),
}  # fmt: skip
"""Shapes and numbers of spots."""
LARGE = {"64 x 1024²": ((64, 1024, 1024), 4000)}
FRAMES = {"64 x 1024²": 1}
LONG = {"512²": 60, "20 x 256²": 12}
"""Frames of movies that each of many cores searches: processes start within the time of their first ones."""
ON_GPU = {"512²": (1000, 256), "64 x 1024²": (4, 1)}
"""Frames of movies that are searched on a GPU, and of a batch."""
RADIUS, SNR, PHOTONS = 3.0, 5.0, 50.0


def frame_of(shape: tuple[int, int, int], spots: int, seed: int) -> NDArray[np.uint16]:
    """Spots at random places in light that doubles along x."""
    rng = np.random.default_rng([seed, *shape])
    width = RADIUS / sqrt(2 if shape[0] == 1 else 3)
    light = np.empty(shape, np.float32)
    light[:] = PHOTONS * np.linspace(0.67, 1.33, shape[2], dtype=np.float32)
    height = (SNR**2 + sqrt(SNR**4 + 4 * SNR**2 * PHOTONS)) / 2
    reach = 4 * round(width)
    for place in rng.uniform(0, np.array(shape) - 1, (spots, 3)):
        low = np.maximum(np.rint(place).astype(int) - reach, 0)
        window = tuple(slice(a, b) for a, b in zip(low, np.rint(place).astype(int) + reach + 1, strict=True))
        grid = np.ogrid[tuple(slice(a, a + n) for a, n in zip(low, light[window].shape, strict=True))]
        away = sum((axis - c) ** 2 for axis, c in zip(grid, place, strict=True))
        light[window] += height * np.exp(-away / (2 * width**2))
    return (100 + rng.poisson(light)).astype(np.uint16)


def seconds_of(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Least CPU seconds of some runs, and the result of the last."""
    least = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        result = work()
        least = min(least, time.process_time() - begin)
    return least, result


def laplacian_maxima(frame: NDArray, sigma: NDArray[np.float64]) -> int:
    """How many maxima of a Laplacian of Gaussian are above its standard deviation."""
    flat = frame.shape[0] == 1
    values, widths = (frame[0], sigma[1:]) if flat else (frame, sigma)
    response = -ndimage.gaussian_laplace(values.astype(np.float32), widths)
    return int(((ndimage.maximum_filter(response, 3) == response) & (response > response.std())).sum())


def row_of(name: str, shape: tuple[int, int, int], spots: int) -> measure.Row:
    count = FRAMES.get(name, 4)
    frames = [frame_of(shape, spots, seed) for seed in range(count)]

    def learned() -> Any:
        return learn_from(lambda rows: (frames[row] for row in rows), count, DetectionSettings(), workers=1)

    model, used = learned()  # compiles
    learning, _ = seconds_of(learned, 1)
    once, found = seconds_of(lambda: detect_frames(frames, used, workers=1, model=model), 3)
    twice, _ = seconds_of(lambda: detect_frames(frames * 2, used, workers=1, model=model), 3)
    frame = (twice - once) / count  # without what is done once a movie
    laplacian, _ = seconds_of(lambda: laplacian_maxima(frames[0], model.sigma), 3)
    row: measure.Row = {
        "movie": name, "spots": spots, "found": round(len(found[0]) / count), "learning": learning,
        "frame": frame, "mvoxel/s": prod(shape) / frame / 1e6, "laplacian": laplacian,
        "times": frame / laplacian,
    }  # fmt: skip
    if find_spec("trackpy"):
        import trackpy

        size = tuple(2 * int(1.5 * s) + 3 for s in model.sigma[-3 if shape[0] > 1 else -2 :])
        row["trackpy"], _ = seconds_of(lambda: trackpy.locate(np.squeeze(frames[0]), size), 2)
    return row


def on_cores(name: str, cores: int) -> measure.Row:
    """Megavoxels a second of a movie on one core, and on many by threads and by processes."""
    (shape, spots), count, voxels = MOVIES[name], LONG[name] * cores, prod(MOVIES[name][0]) / 1e6
    few = [frame_of(shape, spots, seed) for seed in range(8)]
    frames = [few[number % len(few)] for number in range(count)]
    asked = DetectionSettings(device="cpu")
    model, used = learn_from(lambda rows: (frames[row] for row in rows), count, asked)
    detect_frames(few[:1], used, workers=1, model=model)  # compiles
    begin = time.perf_counter()
    here, _ = detect_frames(few, used, workers=1, model=model)
    seconds = time.perf_counter() - begin
    row: measure.Row = {"movie": name, "frames": count, "cores": cores, "one": len(few) * voxels / seconds}
    with measure.processes(cores) as pool:
        row["bound"] = sum(
            len(few) * voxels / each for each in pool.map(searching, [(few, used, model)] * cores)
        )
    alike = []
    for how, threads in (("threads", cores), ("processes", 0)):
        with patch.multiple(searched, _FEW=threads, _WORTH=0):
            begin = time.perf_counter()
            seen, _ = detect_frames(frames, used, workers=cores, count=count, model=model)
            row[how] = count * voxels / (time.perf_counter() - begin)
        alike.append(np.array_equal(seen.position[: len(here)], here.position))
    return row | {"alike": all(alike)}


def searching(given: tuple[Any, DetectionSettings, Any]) -> float:
    """Seconds of one search of some frames, after one that compiles; all processes at the same time."""
    frames, used, model = given
    detect_frames(frames[:1], used, workers=1, model=model)
    begin = time.perf_counter()
    detect_frames(frames, used, workers=1, model=model)
    return time.perf_counter() - begin


def on_gpu(name: str) -> measure.Row:
    """Megavoxels a second of a movie on a GPU and on one core, and the share of spots that are the same."""
    from measure_gpu import milliseconds

    from outbid.detection.gpu.search import spots_of_frames

    (shape, spots), (count, batch) = (MOVIES | LARGE)[name], ON_GPU[name]
    few = [frame_of(shape, spots, seed) for seed in range(min(FRAMES.get(name, 8), count))]
    frames, voxels = [few[number % len(few)] for number in range(count)], prod(shape) / 1e6

    def learned() -> Any:
        return learn_from(lambda rows: (frames[row] for row in rows), count, DetectionSettings())

    learned()  # compiles
    begin = time.perf_counter()
    model, used = learned()
    learning = time.perf_counter() - begin
    detect_frames([few[0][:, :64, :64]], used, workers=1, model=model)  # compiles
    cpu, (here, _) = seconds_of(lambda: detect_frames(few, used, workers=1, model=model), 1)
    taken, _ = milliseconds(lambda: spots_of_frames(frames[:batch], model, used), 3)
    begin, card = time.perf_counter(), replace(used, device="gpu")
    there, how = detect_frames(frames, card, workers=2, count=count, model=model)
    seconds = time.perf_counter() - begin
    there, here = (
        np.column_stack([1e6 * found.frame, found.position])[found.frame < len(few)]
        for found in (there, here)
    )
    near, _ = cKDTree(there).query(here)
    return {
        "movie": name, "frames": count, "device": how.device, "core": len(few) * voxels / cpu,
        "batch": batch * voxels / taken * 1e3, "detect": count * voxels / seconds,
        "with learning": count * voxels / (seconds + learning), "spots": len(here),
        "gpu spots": len(there), "same": float(np.mean(near < 1e-3)),
    }  # fmt: skip


def rows(large: bool) -> Iterator[measure.Row]:
    with measure.processes(1) as pool:
        for name, (shape, spots) in (MOVIES | (LARGE if large else {})).items():
            yield pool.submit(row_of, name, shape, spots).result()


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--large", action="store_true", help="also 64 x 1024 x 1024")
    parser.add_argument("--cores", type=int, help="megavoxels a second on one core and on so many")
    parser.add_argument("--gpu", action="store_true", help="megavoxels a second on a GPU")
    chosen = parser.parse_args()
    if chosen.gpu:
        measure.show(on_gpu(name) for name in ON_GPU)
    else:
        measure.show((on_cores(name, chosen.cores) for name in LONG) if chosen.cores else rows(chosen.large))


if __name__ == "__main__":
    main()
