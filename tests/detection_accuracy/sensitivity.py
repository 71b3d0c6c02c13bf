"""What changes if a constant of detection is smaller or larger: ``python -m detection_accuracy.sensitivity``.

Constants that follow from an error level, or that only guard, are left out, and those of compiled functions
cannot be changed. The images are the first ones of some cells of all kinds. The table says how much the
Jaccard index changes, paired over the images, and in which cell it falls most. It is kept in
tests/detection_sensitivity.json.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from accuracy.options import scale_constant

from outbid import DetectionSettings, detect
from outbid.detection import found, model

from . import agree, grid, origin
from .cells import Cell, View, view

LOADED = found, model
"""`detect` loads these late: a module that is loaded while a constant is changed would keep the change."""
RECORD = grid.REPOSITORY / "tests" / "detection_sensitivity.json"
FACTORS = (0.7, 1.4)
SEEDS = 2
CELLS = (
    Cell("camera", 2, 1.5, 3.0, 6.0),
    Cell("camera", 2, 3.0, 4.0, 3.0),
    Cell("camera", 2, 3.0, 2.0, 20.0),
    Cell("camera", 2, 6.0, 7.0, 12.0),
    Cell("camera", 2, 8.0, 3.0, 20.0),
    Cell("optics", 2, 1.5, 4.0, 3.0),
    Cell("optics", 2, 3.0, 3.0, 6.0),
    Cell("optics", 2, 3.0, 7.0, 20.0),
    Cell("optics", 2, 6.0, 4.0, 12.0),
    Cell("optics", 2, 8.0, 7.0, 12.0),
    Cell("optics", 2, 3.0, 4.0, 12.0, "8 bit"),
    Cell("optics", 2, 8.0, 4.0, 16.0, "bodies"),
    Cell("optics", 2, 8.0, 7.0, 22.0, "bodies"),
    Cell("camera", 3, 1.5, 3.0, 6.0),
    Cell("optics", 3, 3.0, 4.0, 12.0),
    Cell("optics", 3, 8.0, 7.0, 22.0, "bodies"),
)
CONSTANTS = (
    "bodies._ABOUT",
    "bodies._ALIKE",
    "bodies._BODY",
    "bodies._EVERYWHERE",
    "bodies._WITHIN",
    "candidates._KEPT",
    "candidates._MORE",
    "fitted._FAR",
    "joint._EVERYWHERE",
    "joint._FALSE",
    "joint._FLOOR",
    "joint._LEAST",
    "joint._MORE",
    "joint._MOST",
    "joint._OVERLAP",
    "joint._RIDGE",
    "joint._SAME",
    "joint._STEP",
    "joint._WINDOW",
    "spectrum._BLOCK",
    "spectrum._KERNEL",
    "spectrum._RATIO",
    "tiles._MARGIN",
    "width._ROOM",
)
"""Modules of `outbid.detection`, and names in them."""
Row = dict[str, Any]


@cache
def _seen(cell: Cell, seed: int) -> View:
    return view(cell, seed)


def scores(change: str) -> Row:
    """Jaccard index of each image, after a change of a constant (``joint._SAME*0.7``), or without any."""
    back = scale_constant(f"detection.{change}") if change else lambda: None
    try:
        seen = {cell.name: [_score(cell, seed) for seed in range(SEEDS)] for cell in CELLS}
    finally:
        back()
    return {"jsc": seen}


def _score(cell: Cell, seed: int) -> float:
    one = _seen(cell, seed)
    spots, _ = detect([one.image], DetectionSettings(spacing=cell.voxel), workers=1)
    return round(float(agree.jaccard(agree.counts(spots.position, one, cell))), 4)


def changed(name: str, new: Row, usual: Row) -> Row:
    """A row of the table: the mean change with its standard error, and the cell that loses most."""
    apart = {cell: np.subtract(new["jsc"][cell], usual["jsc"][cell]) for cell in usual["jsc"]}
    every = np.concatenate(list(apart.values()))
    worst = min(apart, key=lambda cell: float(apart[cell].mean()))
    return {
        "name": name,
        "gain": round(float(every.mean()), 4),
        "error": round(float(every.std(ddof=1) / np.sqrt(len(every))), 4),
        "worst": [worst, round(float(apart[worst].mean()), 4)],
    }


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=CONSTANTS, help="names of constants; by default all")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(words)
    changes = [f"{name}*{factor:g}" for name in given.only for factor in FACTORS]
    stated, usual = origin.stated(), scores("")
    table = (
        {row["name"]: row for row in json.loads(RECORD.read_text("utf-8"))["rows"]} if RECORD.exists() else {}
    )
    for change, row in grid.over({change: (scores, change) for change in changes}, given.workers):
        if "error" not in row:
            table[change] = changed(change, row, usual)
        rows = [table[name] for name in sorted(table)]
        mean = round(float(np.mean(list(usual["jsc"].values()))), 4)
        record = {**stated, "images": SEEDS * len(CELLS), "mean": mean, "rows": rows}
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
