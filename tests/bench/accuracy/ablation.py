"""What one change is worth: paired over the list, with standard errors, kept in ablation.json.

``python -m accuracy.ablation NAME WITH.npz WITHOUT.npz`` compares two records of `run` and keeps a
row. ``python -m accuracy.ablation --sensitivity LINKER`` halves and doubles each field of the options of
learning and each of `priors`, and keeps a row for each in sensitivity.json; with ``--only`` some of them.
Each change is measured on one core, and as many side by side as there are.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks import measure

from .compare import SCORES, Difference, compared, mean_of
from .measured import Measured, Record
from .movies import HERE, Movie
from .options import scalable, scale_constant
from .run import CHOICES, REPOSITORY, about, chosen, over

ABLATION = HERE / "ablation.json"
SENSITIVITY = HERE / "sensitivity.json"
_FACTORS = (0.5, 2.0)
_FOLDERS = "model", "inference", "learn", "lineage"
_LEFT_OUT = frozenset((
    "marks", "region", "pinned", "errors", "NEGLIGIBLE", "CORRELATION", "_DIRECTED",
))  # fmt: skip
"""Modules that change no link of the list; constants that compiled functions hold, or that would pass 1."""
_BEGINS = "Prior", "Error level", "Initial", "Where EM"
"""Of docstrings of constants that are neither guards nor exact."""

Row = dict[str, object]


def row_of(name: str, new: Record, old: Record) -> Row:
    """What `new` has and `old` has not: gains with their errors, and the kind that loses most."""
    kinds = compared(new, old).kinds
    mean = mean_of("", kinds)
    worst = min(kinds, key=lambda kind: kind.scores["link F1"].gain)
    row: Row = {"name": name, "movies": sum(k.scores["link F1"].movies for k in kinds)}
    row |= {title: _shown(mean.scores[title]) for title in SCORES if mean.scores[title].movies}
    return row | {
        "admitted": admitted(mean.scores),
        "worst": [worst.name, round(worst.scores["link F1"].gain, 4)],
        "time": round(mean.seconds, 3),
        "commits": [new.about["commit"], old.about["commit"]],
    }


def admitted(scores: dict[str, Difference]) -> bool:
    """Whether a gain in link F1, IDF1 or calibration exceeds twice its standard error."""
    better = (scores[title] for title in ("link F1", "IDF1"))
    return any(one.gain > 2 * one.error for one in better) or (
        -scores["calibration"].gain > 2 * scores["calibration"].error
    )


def _shown(found: Difference) -> list[float]:
    return [round(found.gain, 5), round(found.error, 5)]


def keep(path: Path, rows: Sequence[Row], **origin: object) -> None:
    """Put rows into a table in a file, in place of those of the same names."""
    table = json.loads(path.read_text("utf-8")) if path.exists() else {"rows": []}
    new = {row["name"] for row in rows}
    table = origin | {"rows": [row for row in table["rows"] if row["name"] not in new] + list(rows)}
    text = json.dumps(table, indent=1).replace("\n   ", " ").replace("\n  }", " }")
    path.write_text(text + "\n", encoding="utf-8")


def priors() -> Iterator[str]:
    """Priors and error levels of the engine, as their docstrings say, that no compiled function holds."""
    folders = (REPOSITORY / "tracker" / "learned" / name for name in _FOLDERS)
    for path in (path for folder in folders for path in sorted(folder.glob("*.py"))):
        rows, module = ast.parse(path.read_text("utf-8")).body, f"learned.{path.parent.name}.{path.stem}"
        module = module.removesuffix(".__init__")
        for row, after in zip(rows, rows[1:], strict=False):
            said = ast.unparse(after).strip("'\"")
            if isinstance(row, ast.Assign) and said.startswith(_BEGINS) and path.stem not in _LEFT_OUT:
                names = [one.id for one in ast.walk(row.targets[0]) if isinstance(one, ast.Name)]
                names = [f"{module}.{name}" for name in names if name not in _LEFT_OUT]
                yield from filter(_scales, names)


def _scales(name: str) -> bool:
    """Whether a constant of a module can be scaled."""
    try:
        scale_constant(f"{name}*2")()
    except (ValueError, TypeError):
        return False
    return True


def sensitivity(linker: str, names: Sequence[str], movies: str, jobs: int) -> Iterator[Row]:
    """A row for each option or constant halved, and doubled, against all as they are."""
    changes = [f"{name}*{factor:g}" for name in names for factor in _FACTORS]
    linkers = [linker, *(f"{linker}?{change}" for change in changes)]
    with measure.processes(jobs) as pool:
        rows = pool.map(partial(_rows, chosen(movies)), linkers)
        usual = Record(about(linker), next(rows))
        for change, changed in zip(changes, rows, strict=True):
            found = row_of(change, Record(about(linker), changed), usual)
            print(found, file=sys.stderr)
            yield {key: value for key, value in found.items() if key not in {"admitted", "commits"}}


def _rows(movies: Sequence[Movie], linker: str) -> list[Measured]:
    return list(over(movies, linker))


def main() -> None:
    parser = argparse.ArgumentParser(prog="accuracy.ablation", description=__doc__)
    parser.add_argument("name", nargs="?", help="of the change")
    parser.add_argument("records", nargs="*", type=Path, help="with the change, and without it")
    parser.add_argument("--sensitivity", metavar="LINKER", help="vary the options of this linker")
    parser.add_argument("--only", nargs="+", help="names of options and constants; by default all")
    parser.add_argument("--movies", default="developed", choices=CHOICES)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if given.sensitivity:
        from outbid.learned.learn.options import LearnOptions

        options = [name for name in scalable(LearnOptions()) if name != "workers"]  # threads change no link
        names = given.only or [*options, *priors()]
        if not given.only:  # options that are gone have no row
            SENSITIVITY.unlink(missing_ok=True)
        for row in sensitivity(given.sensitivity, names, given.movies, given.jobs):
            keep(SENSITIVITY, [row], **about(given.sensitivity))
        return
    new, old = (Record.load(path) for path in given.records)
    row = row_of(given.name, new, old)
    print(json.dumps(row))
    keep(ABLATION, [row])


if __name__ == "__main__":
    main()
