"""Spots or bodies with nothing set: how many images of each are taken for the other.

Spots are those of the 51 kinds in uneven light, by two renderers; bodies those of the grid, and the fly's. In
tests/bench/, `python -m detection_accuracy.choice --first 5001 --jobs 8` measures them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from benchmarks import measure
from numpy.typing import NDArray

from outbid import DetectionSettings, detect
from outbid.formats.images.folders import open_movie

from . import cells, real, uneven

FLY_FRAMES = (0, 5, 10, 15)
Seen = tuple[str, NDArray, tuple[float, float, float]]


def spots(seed: int) -> Iterator[Seen]:
    """One image of each kind of spots by each renderer."""
    for renderer, kind in uneven.named([]):
        image, _ = uneven.image_of(renderer, kind, seed)
        yield f"{renderer} {kind}", image.reshape(-1, *image.shape[-2:]), (1.0, 1.0, 1.0)


def bodies(seed: int) -> Iterator[Seen]:
    """One image of each kind of bodies."""
    for cell in cells.cells():
        if cell.kind == "bodies":
            yield cell.name, cells.view(cell, seed).image, cell.voxel


def fly() -> Iterator[Seen]:
    """Single frames of the fly's nuclei."""
    movie = open_movie(real.DATA / "drosophila_nuclei" / "tif", spacing=real.FLY_VOXEL)
    for frame, image in zip(FLY_FRAMES, movie.frames(FLY_FRAMES), strict=True):
        yield f"fly {frame}", image, real.FLY_VOXEL


def are_bodies(image: NDArray, voxel: tuple[float, float, float]) -> bool:
    """What is chosen with nothing set but the voxel."""
    return bool(detect([image], DetectionSettings(spacing=voxel, device="cpu"), workers=1)[1].bodies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, help="images of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="images judged at once")
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    rows = {"spots": [0, 0], "bodies": [0, 0]}
    with measure.processes(chosen.jobs) as pool:
        for truth, source in [
            *(("spots", spots(seed)) for seed in seeds), *(("bodies", bodies(seed)) for seed in seeds),
            *([("bodies", fly())] if real.folder_of("fly").exists() else []),
        ]:  # fmt: skip
            names, images, voxels = zip(*source, strict=True)
            for name, taken in zip(names, pool.map(are_bodies, images, voxels), strict=True):
                rows[truth][0] += taken != (truth == "bodies")
                rows[truth][1] += 1
                if taken != (truth == "bodies"):
                    sys.stderr.write(f"{name}: not taken for {truth}\n")
    print(json.dumps({f"{truth} taken for the other": f"{w} of {n}" for truth, (w, n) in rows.items()}))


if __name__ == "__main__":
    main()
