"""The tables and figures of the three papers at sizes of their own, for tests/papers_record.json.

``python tests/papers.py --device gpu`` measures those that a GPU changes, with ``--device cpu`` the others;
each replaces its part of the record as soon as it is done. One that takes longer than its time is ended; the
sizes it completed are kept. docs/explanation/papers.md is made from it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from outbid.errors import OutbidError
from outbid.simulate.experiment import Panel, Row
from outbid.simulate.experiments.papers import paper_named
from outbid.simulate.paper import Claim, Paper, Problems, conduct_paper, mean_rows

REPOSITORY = Path(__file__).resolve().parent.parent
RECORD = REPOSITORY / "tests" / "papers_record.json"
EXTENTS: dict[str, dict[str, tuple[Problems, ...]]] = {
    "gpu": {
        "date-nagi-table2": (Problems((1000, 2000, 3000, 4000, 5000), 5, "gpu"),),
        "date-nagi-table1": (Problems((500, 1000, 1500, 2000, 3000, 4000, 5000), 5, "gpu"),),
        "date-nagi-table3": (Problems((5000, 10_000, 15_000, 20_000, 40_000), 5, "gpu"),),
        "roverso-figure1": (Problems((256, 512, 1024, 2048, 4096, 8192), 5, "gpu"),),
        "roverso-figure3": (Problems((256, 512, 1024, 2048), 5, "gpu"),),
        "vasconcelos-figure6": (Problems((50, 100, 200, 400, 800, 1000), 100, "gpu"),),
        "roverso-figure2": (Problems((256, 512, 1024, 2048, 4096), 5, "gpu"),),
        "date-nagi-table5": (Problems((5000, 10_000, 20_000), 1, "gpu"),),
        "date-nagi-table4": (Problems((10_000,), 1, "gpu"),),
    },
    "cpu": {
        "date-nagi-table2": (Problems((1000, 2000), 1),),
        "date-nagi-table3": (Problems((1000, 2000), 1),),
        "date-nagi-table4": (Problems((150,), 1),),
        "date-nagi-table5": (Problems((300,), 1),),
        "roverso-figure2": (Problems((128, 256), 2),),
        "roverso-figure3": (Problems((128, 256), 1),),
        "vasconcelos-figure6": (Problems((50, 100), 10),),
        "vasconcelos-figure5": (Problems((500,), 2),),
        "vasconcelos-failure": (Problems((500,), 3),),
    },
}
"""What is recorded, in some twenty minutes on an H100 and 32 cores, one after the other.

Seconds that they took: Tables 2, 1 and 3 (one instance at 40,000) 19, 53 and 125, Roverso's Figures 1, 2
(to 2,048) and 3 28, 72 and 89, Figure 6 73, Table 5 (to 10,000) 168. The larger sizes need --seconds 550.
In Tables 4 and 5, shards that take turns on one GPU find the messages of 2, 4 and 8: searches of .2
(classical) and 2 to 4 seconds (tree), and nothing is kept before n is complete.
"""
GRACE = 1.3
"""Times its seconds after which a table is ended in the midst of a run."""


class Kept(Paper):
    """A table whose results are saved to a file whenever a size is complete."""

    def __init__(self, name: str, extents: tuple[Problems, ...], folder: Path) -> None:
        self.name, self.folder, self.paper = name, folder, paper_named(name)
        self.cell, self.extents = self.paper.cell, extents

    def rows(self, problems: Problems) -> Iterator[Row]:  # noqa: ARG002
        found: list[Row] = []
        for row in chain.from_iterable(map(self.paper.rows, self.extents)):
            if found and row["n"] != found[-1]["n"]:
                summary = mean_rows(found, self.cell)
                self.keep(summary, [claim.row() for claim in self.claims(summary)], complete=False)
            found.append(row)
            yield row

    def keep(self, summary: list[Row], claims: list[Row], *, complete: bool) -> None:
        settings = json.loads((self.folder / f"{self.name}.csv.json").read_text("utf-8"))
        part = {"card": settings["card"], "summary": summary, "claims": claims, "complete": complete}
        path = self.folder / "part.json"
        path.with_suffix(".new").write_text(json.dumps(part), encoding="utf-8")
        path.with_suffix(".new").replace(path)  # at once, for the process may be killed

    def panels(self, summary: list[Row]) -> list[Panel]:
        return self.paper.panels(summary)

    def claims(self, summary: list[Row]) -> list[Claim]:
        return self.paper.claims(summary)


def conduct(name: str, extents: tuple[Problems, ...], folder: Path, seconds: float) -> None:
    """Measure, in a process of its own, and leave what was found in a file."""
    paper = Kept(name, extents, folder)
    try:
        found = conduct_paper(name, paper, extents[0], folder, seconds)
    except OutbidError as error:
        sys.stderr.write(f"{error}\n")
        return
    paper.keep(found.summary, found.claims, complete=found.complete)


def ended(name: str, extents: tuple[Problems, ...], seconds: float) -> dict[str, object] | None:
    """What was found within some seconds, None if nothing."""
    with tempfile.TemporaryDirectory() as folder:
        given = (name, extents, Path(folder), seconds)
        process = multiprocessing.get_context("spawn").Process(target=conduct, args=given)
        process.start()
        process.join(GRACE * seconds)  # a single run may take long
        process.kill()
        process.join()
        part = Path(folder) / "part.json"
        return json.loads(part.read_text("utf-8")) if part.exists() else None


def main() -> None:
    sys.path.insert(0, str(REPOSITORY / "tests" / "benchmarks"))
    import measure

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--only", nargs="*", help="names, the others are left as they are")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each of them")
    parser.add_argument("--record", type=Path, default=RECORD, help="another one, where several run at once")
    chosen = parser.parse_args()
    path: Path = chosen.record
    record = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name, extents in EXTENTS[chosen.device].items():
        if chosen.only and name not in chosen.only:
            continue
        begun = time.monotonic()
        part = ended(name, extents, chosen.seconds)
        said = "nothing" if part is None else "complete" if part["complete"] else "sizes left out"
        sys.stderr.write(f"{name}: {time.monotonic() - begun:.1f} s, {said}\n")
        if part is None:
            continue
        record.setdefault(chosen.device, {})[name] = {
            "commit": measure.commit(),
            "date": measure.today(),
            "machine": measure.provenance(),
            **part,
        }
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
