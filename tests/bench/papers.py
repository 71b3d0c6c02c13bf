"""The tables and figures of the three papers at sizes of their own, for tests/bench/papers_record.json.

``python tests/bench/papers.py --device gpu`` measures those that a GPU changes, with ``--device cpu`` the
others; each replaces its part of the record as soon as it is done. One that takes longer than its time is
ended; the sizes it completed are kept. docs/explanation/papers.md is made from it.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path

from benchmarks import measure

from outbid.compute.arrays import gpu_names
from outbid.simulate.experiment import Row, Size
from outbid.simulate.experiments.papers import PAPERS
from outbid.simulate.paper import extent

RECORD = Path(__file__).with_name("papers_record.json")
EXTENTS: dict[str, dict[str, Size]] = {
    "gpu": {
        "date-nagi-table2": extent((1000, 2000, 3000, 4000, 5000), 5, "gpu"),
        "date-nagi-table1": extent((500, 1000, 1500, 2000, 3000, 4000, 5000), 5, "gpu"),
        "date-nagi-table3": extent((5000, 10_000, 15_000, 20_000, 40_000), 5, "gpu"),
        "roverso-figure1": extent((256, 512, 1024, 2048, 4096, 8192), 5, "gpu"),
        "roverso-figure3": extent((256, 512, 1024, 2048), 5, "gpu"),
        "vasconcelos-figure6": extent((50, 100, 200, 400, 800, 1000), 100, "gpu"),
        "roverso-figure2": extent((256, 512, 1024, 2048, 4096), 5, "gpu"),
        "date-nagi-table5": extent((5000, 10_000, 20_000), 1, "gpu"),
        "date-nagi-table4": extent((10_000,), 1, "gpu"),
    },
    "cpu": {
        "date-nagi-table2": extent((1000, 2000), 1),
        "date-nagi-table3": extent((1000, 2000), 1),
        "date-nagi-table4": extent((150,), 1),
        "date-nagi-table5": extent((300,), 1),
        "roverso-figure2": extent((128, 256), 2),
        "roverso-figure3": extent((128, 256), 1),
        "vasconcelos-figure6": extent((50, 100), 10),
        "vasconcelos-figure5": extent((500,), 2),
        "vasconcelos-failure": extent((500,), 3),
    },
}
"""What is recorded, in some twenty minutes on an H100 and 32 cores, one after the other.

Seconds that they took: Tables 2, 1 and 3 (one instance at 40,000) 19, 53 and 125, Roverso's Figures 1, 2
(to 2,048) and 3 28, 72 and 89, Figure 6 73, Table 5 (to 10,000) 168. The larger sizes need --seconds 550.
In Tables 4 and 5, shards that take turns on one GPU find the messages of 2, 4 and 8: searches of .2
(classical) and 2 to 4 seconds (tree), and nothing is kept before n is complete.
"""


def measured(name: str, size: Size, part: Path) -> None:
    """Measure a table; whenever an n is complete, what was found so far is put into a file."""
    paper, found = PAPERS[name], list[Row]()
    card = gpu_names()[0] if size.device == "gpu" else ""
    for row in chain(paper.rows(size), [None]):
        if found and (row is None or row["n"] != found[-1]["n"]):
            summary = paper.summarised(found)
            claims = paper.conclusions(found, summary)
            kept = {"card": card, "summary": summary, "claims": claims, "complete": row is None}
            part.with_suffix(".new").write_text(json.dumps(kept), encoding="utf-8")
            part.with_suffix(".new").replace(part)  # at once, for the process may be killed
        if row is not None:
            found.append(row)


def within(seconds: float, name: str, size: Size) -> dict[str, object] | None:
    """What was found within some seconds, None if nothing."""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part.json"
        process = multiprocessing.get_context("spawn").Process(target=measured, args=(name, size, part))
        process.start()
        process.join(seconds)
        process.kill()
        process.join()
        return json.loads(part.read_text("utf-8")) if part.exists() else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--only", nargs="*", help="names, the others are left as they are")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each of them")
    parser.add_argument("--record", type=Path, default=RECORD, help="another one, where several run at once")
    chosen = parser.parse_args()
    path: Path = chosen.record
    record = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name, size in EXTENTS[chosen.device].items():
        if chosen.only and name not in chosen.only:
            continue
        begun = time.monotonic()
        part = within(chosen.seconds, name, size)
        said = "nothing" if part is None else "complete" if part["complete"] else "sizes left out"
        sys.stderr.write(f"{name}: {time.monotonic() - begun:.1f} s, {said}\n")
        if part is None:
            continue
        record.setdefault(chosen.device, {})[name] = {**measure.stated(), **part}
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
