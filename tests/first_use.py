"""Run every command on small movies, and print what was compiled: ``python tests/first_use.py FOLDER``.

The output is JSON: commands that `failed`; kernels that were `compiled`; called ones that the table of
`outbid.compute.signatures` lacks, `unlisted`; and those of the table that were not called, `superfluous`.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tifffile
from click.testing import CliRunner
from numba.core import event
from numpy.typing import NDArray
from scenes import tissue
from test_columns import informative, movie, with_features

from outbid import Detections, read_detections, write_tracks
from outbid.cli import main
from outbid.compute.shipped import KernelCache
from outbid.compute.signatures import SIGNATURES, signatures_in
from outbid.data import sample
from outbid.formats import write_detections
from outbid.pins import Pin, append_pin

SPOTS = 9
"""Of an image."""
COLUMNS = ("brightness", "kind:label", "theta:angle=180", "emb_*")


class Names(event.Listener):
    """The kernels that are compiled while it listens."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def on_start(self, what: event.Event) -> None:
        function = what.data["dispatcher"].py_func
        self.found.append(f"{function.__module__}.{function.__qualname__}{what.data['args']}")

    def on_end(self, what: event.Event) -> None:
        """Do nothing at the end of a compilation."""


def write_inputs(folder: Path) -> None:
    """Tables of detections in 3D and 2D, of cells that divide, with columns; images, costs and pins."""
    seen = read_detections(sample("walks"))
    few = seen.take(seen.frame < 8)
    write_detections(folder / "deep.csv", few)
    write_detections(folder / "deep.parquet", few)
    write_detections(folder / "flat.csv", Detections.from_table(few.frame, few.position[:, 1:]))
    write_detections(folder / "cells.csv", tissue(frames=20, rate=0.05).detections)
    write_tracks(folder / "truth.csv", tissue(frames=20, rate=0.05))
    with_columns = with_features(movie(), informative(movie()))
    write_detections(folder / "columns.csv", with_columns.detections)
    start = few.frame_start.tolist()
    for number, row in enumerate((0, start[1])):
        place = tuple(few.position[row].tolist())
        append_pin(folder / "pins.csv", Pin(("start", "end")[number], ((int(few.frame[row]), place),)))
    _write_images(folder)
    rng = np.random.default_rng(0)
    for name, costs in (("whole", rng.integers(0, 99, (40, 50))), ("real", rng.random((40, 50)))):
        np.save(folder / f"{name}.npy", costs)
    np.save(folder / "source.npy", rng.random((40, 3)))
    np.save(folder / "target.npy", rng.random((40, 3)))


def _write_images(folder: Path) -> None:
    flat, deep = ([_image(shape, seed) for seed in range(2)] for shape in ((1, 96, 96), (16, 64, 64)))
    tifffile.imwrite(folder / "flat.tif", np.concatenate(flat), metadata={"axes": "TYX"})
    tifffile.imwrite(folder / "deep.tif", np.stack(deep), metadata={"axes": "TZYX"})
    labels = np.zeros((3, 4, 32, 32), np.uint16)
    labels[:, 1:3, 4:9, 4:9], labels[:, 1:3, 20:25, 14:19] = 1, 2
    tifffile.imwrite(folder / "labels.tif", labels, metadata={"axes": "TZYX"})


def _image(shape: tuple[int, int, int], seed: int) -> NDArray[np.uint16]:
    """Spots on an even background with the noise of a camera."""
    rng, place = np.random.default_rng(seed), np.moveaxis(np.indices(shape), 0, -1)
    light = np.full(shape, 100.0)
    low, high = np.minimum(8, np.array(shape) // 2), np.maximum(np.subtract(shape, 8), 1)
    for centre in rng.uniform(low, high, (SPOTS, 3)):
        light += 200 * np.exp(-0.5 * np.square((place - centre) / 1.8).sum(axis=-1))
    return rng.poisson(light).astype(np.uint16)


def commands() -> Iterator[tuple[str, ...]]:
    """The commands, in an order in which each finds its input."""
    yield "track", "deep.csv"
    yield "track", "deep.csv", "-o", "again.csv", "--config", "deep_tracks.csv.json"
    yield "track", "deep.parquet", "-o", "deep_tracks.parquet"
    yield "track", "flat.csv"
    yield "track", "flat.csv", "-o", "one.csv", "--workers", "1"
    for name in ("deep.csv", "deep.parquet", "flat.csv"):
        yield "track", name, "-o", "gate.parquet", "--max-distance", "1.5", "--overwrite"
        yield "track", name, "-o", "gate.csv", "--max-distance", "1.5", "--max-gap", "0", "--overwrite"
        yield "track", name, "-o", "gaps.csv", "--max-distance", "1.5", "--max-gap", "2", "--overwrite"
    yield "track", "deep.csv", "-o", "squared.csv", "--max-distance", "1.5", "--cost", "squared"
    yield "track", "deep.csv", "-o", "pins.out.csv", "--pins", "pins.csv"
    yield "track", "deep.csv", "-o", "gated.csv", "--pins", "pins.csv", "--max-distance", "1.5"
    yield "track", "columns.csv", *(word for name in COLUMNS for word in ("--features", name))
    yield "track", "columns.csv", "-o", "no_columns.csv", "--no-features"
    yield "track", "cells.csv", "--json"
    yield "track", "cells.csv", "-o", "merges.csv", "--merges"
    yield "learn", "deep.csv", "cells.csv", "-o", "model.json"
    yield "track", "deep.csv", "-o", "model.csv", "--model", "model.json"
    yield "score", "cells_tracks.csv", "truth.csv"
    yield "score", "deep_tracks.parquet", "deep_tracks.csv"
    yield "score", "deep_tracks.csv", "deep_tracks.parquet", "--json"
    yield "convert", "cells_tracks.csv", "cells.parquet"
    yield "convert", "cells.parquet", "cells.xml"
    yield "convert", "deep_tracks.csv", "filled.csv", "--fill-gaps"
    yield "filter", "deep_tracks.csv", "--min-length", "3", "--cut-below", "0.5"
    yield "filter", "deep_tracks.parquet", "-o", "near.parquet", "--where", "mean(z) < 40"
    yield "measure", "cells_tracks.csv", "-o", "motion.csv"
    yield "measure", "deep_tracks.parquet", "-o", "deep_motion.csv"
    yield "report", "deep_tracks.csv"
    yield "report", "cells_tracks.csv", "truth.csv"
    yield "advise", "deep.csv"
    yield "advise", "flat.csv", "--json"
    yield "detect", "flat.tif", "-o", "spots.csv"
    yield "detect", "deep.tif", "-o", "deep_spots.csv"
    yield "detect", "deep.tif", "--preview"
    yield "detect", "deep.tif", "-o", "bodies.csv", "--bodies"
    yield "detect", "labels.tif", "-o", "labels.csv", "--labels"
    for name in ("whole.npy", "real.npy"):
        yield "assign", name
        yield "assign", name, "--unmatched-cost", "5"
    yield "assign", "source.npy", "target.npy"


def run_all(folder: Path) -> list[str]:
    """Run the commands in a folder; returns those that fail, with what they say."""
    write_inputs(folder)
    failed = []
    for words in commands():
        done = CliRunner().invoke(main, words)
        if done.exit_code:
            failed.append(f"{' '.join(words)}: {done.output.strip()[-300:]}")
    return failed


def called() -> set[str]:
    """The kernels that Python has called, with the types of their arguments."""
    found = set()
    for name, module in list(sys.modules.items()):
        if name.startswith("outbid.") and name.endswith("_cpu"):
            for kernel in vars(module).values():
                if isinstance(getattr(kernel, "_cache", None), KernelCache) and kernel.__module__ == name:
                    found |= {_spelled(name, kernel.__name__, types) for types in kernel.overloads}
    return found


def listed() -> set[str]:
    """The kernels of the table."""
    return {
        _spelled(f"outbid.{one.module}_cpu", one.function, one.types) for one in signatures_in(SIGNATURES)
    }


def _spelled(module: str, function: str, types: tuple[object, ...]) -> str:
    return f"{module}.{function}{types}"


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    names = Names()
    with event.install_listener("numba:compile", names):
        failed = run_all(Path())
    used, table = called(), listed()
    facts = {"unlisted": sorted(used - table), "superfluous": sorted(table - used)}
    sys.stdout.write(json.dumps({"failed": failed, "compiled": names.found, **facts}))
