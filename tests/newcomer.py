"""The first hour of a newcomer: from ``git clone`` to a scored sample, to a result of their own, to a figure.

Everything runs in a new folder and a new environment. ``python tests/newcomer.py --keep FOLDER`` keeps the
folder with what each command printed, to be looked at; the record is tests/newcomer_record.json. pip must
find its packages; nothing else of the machine is used.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
RECORD = REPOSITORY / "tests" / "newcomer_record.json"
sys.path.insert(0, str(REPOSITORY / "tests" / "benchmarks"))

import measure  # noqa: E402

REPOSITORY_NAME = "REPOSITORY"
"""What the record says in place of the origin, whose path belongs to one machine."""
OUTBID = "outbid/.venv/bin/outbid"
OWN_TABLE = """\
import csv, math, random
random.seed(1)
with open("cells.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["Frame", "x [um]", "y [um]", "z [um]", "Intensity"])
    cells = [[random.uniform(0, 60) for _ in range(3)] + [random.uniform(0, 6.28)] for _ in range(60)]
    for frame in range(40):
        for cell in cells:
            cell[3] += random.gauss(0, 0.3)
            step = math.cos(cell[3]), math.sin(cell[3]), random.gauss(0, 0.3)
            cell[:3] = [place + 0.8 * by for place, by in zip(cell[:3], step)]
            if random.random() > 0.05:
                rows.writerow([frame, *(round(place, 3) for place in cell[:3]), random.randint(90, 160)])
"""
"""Somebody's own table: cells that turn slowly, columns named as another program names them."""

IN_PYTHON = """\
import pandas as pd
import outbid

table = pd.read_csv("cells.csv")
run = outbid.track(table)
print(run.summary)
print(run.to_dataframe().head())
"""

A_FIGURE = """\
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

tracks = pd.read_csv("cells_tracks.csv")
figure, axes = plt.subplots(figsize=(6, 6))
for _, track in tracks.groupby("track_id"):
    axes.plot(track["x"], track["y"], linewidth=1)
axes.set(xlabel="x (µm)", ylabel="y (µm)", aspect="equal")
figure.savefig("cells.png", dpi=120)
print(tracks["track_id"].nunique(), "tracks in cells.png")
"""


class Step(NamedTuple):
    """A command that a newcomer types, and the folder in which it runs."""

    aim: str
    command: str
    folder: str = "."


def steps() -> list[Step]:
    """All commands in their order."""
    return [
        Step("get it", f"git clone --quiet {REPOSITORY_NAME} outbid"),
        Step("sample, tracked and scored", "make demo", "outbid"),
        Step("packages for reports", ".venv/bin/pip install --quiet '.[report]' pandas", "outbid"),
        Step("what is in my table?", f"{OUTBID} advise cells.csv"),
        Step("my table, tracked", f"{OUTBID} track cells.csv -o cells_tracks.csv"),
        Step("only what is safe", f"{OUTBID} filter cells_tracks.csv -o safe.csv --cut-below 0.5"),
        Step("a page about it", f"{OUTBID} report cells_tracks.csv -o cells.html"),
        Step("the same in Python", "outbid/.venv/bin/python mine.py"),
        Step("a figure", "outbid/.venv/bin/python figure.py"),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--origin", default=str(REPOSITORY), help="what is cloned")
    parser.add_argument("--keep", type=Path, help="folder that stays, for the outputs to be looked at")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        exec(compile(OWN_TABLE.replace('"cells.csv"', repr(str(folder / "cells.csv"))), "own", "exec"), {})
        (folder / "mine.py").write_text(IN_PYTHON, "utf-8")
        (folder / "figure.py").write_text(A_FIGURE, "utf-8")
        rows = [taken(number, step, folder, given.origin) for number, step in enumerate(steps())]
    record = {
        "commit": measure.commit(),
        "date": measure.today(),
        "machine": measure.provenance(),
        "steps": rows,
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def taken(number: int, step: Step, folder: Path, origin: str) -> dict[str, object]:
    """Run a step, cloning from `origin`, and write what it printed into NUMBER.txt."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")
    }
    command = step.command.replace(REPOSITORY_NAME, shlex.quote(origin))
    begin = time.perf_counter()
    done = subprocess.run(
        command, shell=True, cwd=folder / step.folder, env=environment, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    seconds = round(time.perf_counter() - begin, 1)
    (folder / f"{number}.txt").write_text(f"$ {step.command}\n{done.stdout}", "utf-8")
    sys.stderr.write(f"{step.aim}: {seconds} s\n")
    if done.returncode:
        sys.exit(f"{step.command} ended with exit code {done.returncode}:\n{done.stdout}")
    return {"aim": step.aim, "command": step.command, "seconds": seconds, "lines": done.stdout.count("\n")}


if __name__ == "__main__":
    main()
