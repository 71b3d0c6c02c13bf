"""How much the Jaccard index changes when a constant of detection is halved, and doubled.

In tests/bench/, `python -m detection_accuracy.sensitivity --jobs 16` measures each constant over 23 images,
13 in uneven light and 10 cells of the grid, with nothing set (a minute of one core a change), and writes the
record that the docs show. Shares above a half are scaled by what they lack of 1.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from benchmarks import measure

from outbid import DetectionSettings, detect, detection

from . import agree, cells, grid, uneven

RECORD = Path(__file__).resolve().parents[1] / "detection_sensitivity.json"
MODULES = (
    "candidates", "choice", "decision", "fit", "joint", "model", "noise", "prepare", "spectrum", "stabilise",
    "transform", "wider", "width",
)  # fmt: skip
"""Modules whose constants act with nothing set."""
ELSEWHERE = ("fit_cpu", "REACH"), ("stabilise", "NEGLIGIBLE")
"""Constants that these modules take from others."""
FACTORS = (0.5, 2.0)
SEED = 361
_CONSTANT = re.compile(r"^([A-Z_]+) = ", re.MULTILINE)
"""Of a module's source."""
Change = tuple[str, str, float]


def module_of(name: str) -> ModuleType:
    """A module of detection."""
    return import_module(f"outbid.detection.{name}")


def names() -> Iterator[tuple[str, str]]:
    """Modules of detection and their constants that are numbers."""
    for module in MODULES:
        home = module_of(module)
        for name in _CONSTANT.findall(inspect.getsource(home)):
            if isinstance(getattr(home, name), int | float):
                yield module, name
    yield from ELSEWHERE


def homes(module: str, name: str) -> list[ModuleType]:
    """Modules that use a constant: its own, and those that import it if it is public, but for kernels."""
    if name.startswith("_"):
        return [module_of(module)]
    paths = sorted(Path(detection.__file__).parent.glob("[a-z]*.py"))
    every = [module_of(path.stem) for path in paths if not path.stem.endswith("_cpu")]
    return [home for home in every if name in vars(home)]


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
    used_in, value = homes(module, name), getattr(module_of(module), name)
    try:
        for home in used_in:
            setattr(home, name, changed(value, factor))
        return scores()
    finally:
        for home in used_in:
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
    parser.add_argument("--only", nargs="*", default=[], help="of the constants, such as joint.ONE_SPOT")
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
