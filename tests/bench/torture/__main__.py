"""``python -m torture``, in tests/bench/: disturbs the commands that write."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks import measure

from .acts import ACTS, Stage, renewed, staged
from .runs import import_all
from .writers import WRITERS, Writer, make_inputs

_SLOW = 8
"""Slow commands have their turn in one of so many rounds."""
Report = dict[str, Any]
"""Hours of all processes, trials of each act, finds, and names of the writers."""


def trials(
    seed: int, writers: list[Writer], acts: list[str]
) -> Iterator[tuple[str, Writer, bool, random.Random]]:
    """Acts and commands in a random order, each once a round; with a random number generator of its own.

    Every act has its turn before any has its next.
    """
    for turn in range(10**9):
        every = [(act, writer, replaces) for act in acts for writer in writers for replaces in (False, True)]
        every = [one for one in every if not one[1].slow or turn % _SLOW == 1]
        random.Random(f"{seed} {turn}").shuffle(every)
        turns = {act: count() for act in acts}
        order = [(next(turns[act]), place) for place, (act, *_) in enumerate(every)]
        every = [every[place] for _, place in sorted(order)]
        for act, writer, replaces in every:
            yield act, writer, replaces, random.Random(f"{seed} {turn} {act} {writer.name} {replaces}")


class Bench:
    """A folder for each command, made when it is asked for."""

    def __init__(self, scratch: Path) -> None:
        self._scratch, self._stages = scratch, dict[tuple[str, bool], Stage]()
        self.inputs = scratch / "inputs"
        self.inputs.mkdir()
        make_inputs(self.inputs)

    def stage(self, writer: Writer, replaces: bool) -> Stage:
        """The folder as it is before the command runs."""
        key = writer.name, replaces
        if key not in self._stages:
            folder = self._scratch / f"{len(self._stages)}"
            folder.mkdir()
            folder.chmod(0o777)
            self._stages[key] = staged(writer, self.inputs, folder, replaces=replaces)
        stage = self._stages[key]
        renewed(stage.folder, self.inputs, stage.before)
        return stage


def disturbed(given: argparse.Namespace) -> Report:
    """Trials of one process, one after the other."""
    tried: Counter[str] = Counter()
    finds: list[dict[str, Any]] = []
    chosen = [writer for writer in WRITERS if writer.name in given.writers]
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        bench, begin = Bench(Path(name)), time.monotonic()
        for act, writer, replaces, rng in trials(given.seed, chosen, given.acts):
            if time.monotonic() > begin + given.seconds or tried.total() >= given.count:
                break
            wrong = ACTS[act](bench.stage(writer, replaces), rng)
            tried[act] += 1
            if wrong:
                finds.append({"act": act, "writer": writer.name, "replaces": replaces, "wrong": wrong})
                sys.stderr.write(f"{finds[-1]}\n")
    hours = (time.monotonic() - begin) / 3600
    return {"hours": hours, "tried": tried, "finds": finds, "writers": given.writers}


def divided(given: argparse.Namespace) -> Report:
    """As many processes as jobs, each with a seed of its own."""
    same = ["--seconds", given.seconds, "--count", given.count]
    same += ["--writers", *given.writers, "--acts", *given.acts]
    commands = [[sys.executable, "-m", "torture", "--seed", given.seed + k, *same] for k in range(given.jobs)]
    runs = [subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True) for words in commands]
    said = [run.communicate()[0] for run in runs]
    if any(run.returncode for run in runs):
        sys.exit(f"Processes of the torture ended with exit codes {[run.returncode for run in runs]}.")
    reports = list(map(json.loads, said))
    return {
        "hours": sum(report["hours"] for report in reports),
        "tried": sum((Counter(report["tried"]) for report in reports), Counter()),
        "finds": [find for report in reports for find in report["finds"]],
        "writers": given.writers,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1e9, help="of each process")
    parser.add_argument("--count", type=int, default=10**9, help="trials of each process in all")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--writers", nargs="+", default=[writer.name for writer in WRITERS])
    parser.add_argument("--acts", nargs="+", default=list(ACTS), choices=list(ACTS))
    parser.add_argument("--record", type=Path, help="file that holds the record")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "2"
    import_all()
    report = disturbed(given) if given.jobs == 1 else divided(given)
    if given.record:
        record = {**measure.stated(), **report, "hours": round(report["hours"], 2)}
        given.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
