"""How much the Jaccard index changes when a constant of detection is halved, and doubled.

In tests/bench/, `python -m detection_accuracy.sensitivity --jobs 16` measures each constant over 23 images,
13 in uneven light and 10 cells of the grid, with nothing set (a minute of one core a change), and writes the
record that the docs show. Shares above a half are scaled by what they lack of 1.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import measure

from outbid import DetectionSettings, detect

from . import agree, cells, grid, uneven

RECORD = Path(__file__).resolve().parents[1] / "detection_sensitivity.json"
MODULES = (
    "candidates", "choice", "decision", "fit", "joint", "model", "noise", "prepare", "spectrum", "stabilise",
    "transform", "wider", "width",
)  # fmt: skip
"""Modules whose constants act with nothing set."""
SHARED = {
    ("fit", "SIZES"): ("choice", "wider"), ("choice", "MARGIN"): ("model",),
    ("joint", "PROFILE"): ("wider",), ("joint", "WINDOW"): ("blobs",),
    ("stabilise", "WIDEST"): ("wider",), ("stabilise", "NEGLIGIBLE"): ("noise",),
    ("prepare", "VOXELS"): ("model",), ("wider", "PIECES"): (),
    ("fit", "REACH"): ("blobs", "choice", "joint", "stabilise", "wider"),
}  # fmt: skip
"""Constants that other modules use as well, and these modules."""
FACTORS = (0.5, 2.0)
SEED = 361
Change = tuple[str, str, float]


def names() -> Iterator[tuple[str, str]]:
    """Modules of detection and their constants that are numbers."""
    for module in MODULES:
        for name, value in vars(import_module(f"outbid.detection.{module}")).items():
            if name.startswith("_") and name.isupper() and isinstance(value, int | float):
                yield module, name
    yield from SHARED


def changed(value: float, factor: float) -> float:
    """A constant halved or doubled; a whole number stays one.

    Examples
    --------
    >>> changed(3, 0.5), changed(0.25, 2.0), changed(0.75, 0.5)
    (2, 0.5, 0.875)
    """
    if isinstance(value, int):
        return max(1, round(value * factor))
    return 1 - (1 - value) * factor if 0.5 < value < 1 else value * factor


def scores() -> list[float]:
    """The Jaccard index in each image."""
    kinds = [(renderer, kind) for renderer in uneven.RENDERERS for kind in uneven.KINDS][3::8]
    counting = grid.counting()
    small = [
        cell for cell in cells.cells() if cell.name in counting and (cell.dimensions == 2 or cell.radius < 6)
    ]
    return [uneven.found(*kind, SEED)[0]["jsc"] for kind in kinds] + [_in_cell(cell) for cell in small[5::14]]


def _in_cell(cell: cells.Cell) -> float:
    one = cells.view(cell, SEED)
    seen, _ = detect([one.image], DetectionSettings(spacing=cell.voxel), workers=1)
    return agree.jaccard(agree.counts(seen.position, one, cell))


def measured(change: Change | None) -> list[float]:
    """Scores with one constant changed, or with all as they are."""
    if change is None:
        return scores()
    module, name, factor = change
    homes = [import_module(f"outbid.detection.{one}") for one in (module, *SHARED.get((module, name), ()))]
    value = getattr(homes[0], name)
    try:
        for home in homes:
            setattr(home, name, changed(value, factor))
        return scores()
    finally:
        for home in homes:
            setattr(home, name, value)


def row_of(change: Change, new: list[float], usual: list[float]) -> dict[str, Any]:
    """Mean change of the Jaccard index, its standard error, and the largest loss."""
    gain = np.subtract(new, usual)
    return {
        "name": f"{change[0]}.{change[1]}", "factor": change[2], "gain": round(float(gain.mean()), 4),
        "error": round(float(gain.std(ddof=1) / np.sqrt(len(gain))), 4),
        "worst": round(float(gain.min()), 3),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--only", nargs="*", default=[], help="of the constants, such as joint._ONE_SPOT")
    chosen = parser.parse_args()
    wanted = [name for name in names() if not chosen.only or ".".join(name) in chosen.only]
    changes = [(*name, factor) for name in wanted for factor in FACTORS]
    with measure.processes(chosen.jobs) as pool:
        usual, *rest = pool.map(measured, [None, *changes])
    stated = {**measure.stated(), "images": len(usual), "mean": round(float(np.mean(usual)), 4)}
    rows = [row_of(*pair, usual) for pair in zip(changes, rest, strict=True)]
    measure.write_rows(chosen.record, stated, rows)


if __name__ == "__main__":
    main()
