"""Runs of cases by their numbers."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cases import Seed, case_of, placed
from .judge import FAULTS, reduced, verdict_on
from .kinds import KINDS

SLOW = {"geff": 6, "ctc": 2, "zarr images": 10, "hdf5": 4, "imaris": 4, "nd2": 4, "czi": 4, "lif": 4}
"""One of so many cases of these is run: they take so much longer."""


@dataclass
class Account:
    """Verdicts by format, and the faults that were found."""

    tally: dict[str, Counter[str]] = field(default_factory=dict)
    finds: list[dict[str, Any]] = field(default_factory=list)


def made_seeds(scratch: Path, kinds: Sequence[str]) -> dict[str, list[Seed]]:
    """The seeds of these formats."""
    seeds = {}
    for name in kinds:
        folder = scratch / name
        folder.mkdir()
        seeds[name] = list(KINDS[name].seeds(folder))
    return {name: made for name, made in seeds.items() if made}  # those whose packages are installed


def run(
    seeds: Mapping[str, Sequence[Seed]],
    first: int,
    count: int,
    seconds: float = float("inf"),
    keep: Path | None = None,
) -> Account:
    """Judge so many cases of each format, from a number on; files of faults go to a folder."""
    account = Account({name: Counter() for name in seeds})
    end = time.monotonic() + seconds
    for number in range(first, first + count):
        if time.monotonic() > end:
            break
        for name in seeds:
            if number >= len(seeds[name]) and number % SLOW.get(name, 1):
                continue
            case = case_of(KINDS[name], seeds[name], number)
            verdict = verdict_on(KINDS[name], case)
            account.tally[name][verdict.name] += 1
            if verdict.name in FAULTS:
                case = reduced(KINDS[name], case, verdict)
                find = {"kind": name, "number": number, "seed": case.seed.name, "verdict": verdict.name}
                account.finds.append(find | {"said": verdict.said, "harms": case.harms})
                sys.stderr.write(f"{account.finds[-1]}\n")
                if keep is not None:
                    placed(case.files(KINDS[name]), keep / f"{name}-{number}")
    return account
