"""Runs of cases by their numbers."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .cases import Seed, case_of, placed
from .judge import FAULTS, verdict_on
from .kinds import KINDS

SLOW = {"geff": 6, "ctc": 2, "zarr images": 10, "hdf5": 4, "imaris": 4, "nd2": 4, "czi": 4, "lif": 4}
"""One of so many cases of these is run: they take so much longer."""


def made_seeds(scratch: Path, kinds: Iterable[str]) -> dict[str, list[Seed]]:
    """The seeds of these formats, as far as their packages are installed."""
    seeds = {}
    for name in kinds:
        folder = scratch / name
        folder.mkdir()
        seeds[name] = list(KINDS[name].seeds(folder))
    return {name: made for name, made in seeds.items() if made}


def run(
    seeds: Mapping[str, Sequence[Seed]], numbers: Iterable[int], seconds: float, keep: Path | None
) -> dict[str, Any]:
    """Verdicts by format on the cases of these numbers, and faults, whose files go to a folder."""
    tally: dict[str, Counter[str]] = {name: Counter() for name in seeds}
    finds: list[dict[str, Any]] = []
    end = time.monotonic() + seconds
    for number in numbers:
        if time.monotonic() > end:
            break
        for name, of in seeds.items():
            if number >= len(of) and number % SLOW.get(name, 1):
                continue
            case = case_of(KINDS[name], of, number)
            verdict = verdict_on(KINDS[name], case)
            tally[name][verdict.name] += 1
            if verdict.name in FAULTS:
                find = {"kind": name, "number": number, "seed": case.seed.name, "verdict": verdict.name}
                finds.append(find | {"said": verdict.said, "harms": case.harms})
                sys.stderr.write(f"{finds[-1]}\n")
                if keep is not None:
                    placed(case.files(KINDS[name]), keep / f"{name}-{number}")
    return {"tally": tally, "finds": finds}
