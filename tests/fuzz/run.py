"""Runs of cases by their numbers, and of the planted faults."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import judge
from .cases import Kind, Seed, case_of, placed
from .judge import FAULTS, reduced, verdict_on
from .kinds import KINDS
from .planted import FAULTS as PLANTED
from .planted import Planted, planted

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


def found_by(fault: Planted, seeds: Sequence[Seed], most: int, everywhere: bool) -> int | None:
    """The number of the first case that shows a planted fault, and shows none without it.

    Unless `everywhere`, only the cases with the harm that can show it are looked at.
    """
    kind, first = KINDS[fault.kind], 0
    while first < most:
        with planted(fault):
            number = _first_shown(kind, seeds, range(first, most), None if everywhere else fault.harm)
        if number is None or verdict_on(kind, case_of(kind, seeds, number)).name not in FAULTS:
            return number
        first = number + 1
    return None


def _first_shown(kind: Kind, seeds: Sequence[Seed], numbers: range, harm: str | None) -> int | None:
    for number in numbers:
        case = case_of(kind, seeds, number)
        if harm is not None and [name for name, _ in case.harms] != [harm] * bool(harm):
            continue
        if verdict_on(kind, case).name in FAULTS:
            return number
    return None


def planted_found(
    seeds: Mapping[str, Sequence[Seed]], everywhere: bool, most: int = 20_000
) -> dict[str, int | None]:
    """By the name of each planted fault the number of the case that shows it."""
    judge.SECONDS = 1  # no reader takes so long, and one of the faults hangs
    return {fault.name: found_by(fault, seeds[fault.kind], most, everywhere) for fault in PLANTED}
