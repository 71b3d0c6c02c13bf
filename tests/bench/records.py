"""What each record stands for, and which records are older than the code: ``python tests/bench/records.py``.

A record holds commit, date, machine and what was measured there. It is older than the code when the
behaviour of a source that it stands for has changed since its commit: comments, docstrings and the layout of
lines do not count, nor that a source has moved. No test compares sources with a record. ``make nightly`` ends
with this program, which names every record that is older, and the command that renews it; the pages state the
same.
"""

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
BENCH = Path("tests/bench")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Record:
    """A record, the sources whose behaviour it stands for (as git's glob patterns), and what renews it."""

    name: str
    path: Path
    sources: tuple[str, ...]
    command: str


KERNELS = ("tracker/**/*.cu", "tracker/**/*.cuh", "tracker/**/*_gpu.py")
LEARNED = (
    *(f"tracker/learned/{name}/*.py" for name in ("inference", "learn", "lineage", "model")),
    *(f"tracker/learned/{name}.py" for name in ("linking", "prepare", "summary")),
    "tracker/settings/fixed.py",
)
ASSIGNMENT, DETECTION = ("tracker/assignment/**/*.py",), ("tracker/detection/*.py",)
GATES = ("tracker/geometry/gating*.py", "tracker/gated/linking.py")
OUTPUTS = (
    *(f"tracker/formats/{name}.py" for name in ("files/outputs", "files/records", "tables/parts")),
    "tracker/compute/interrupt.py",
)
PAPERS = ("simulate/matrices.py", "simulate/paper.py", "simulate/experiments/papers/*")
PEERS = ("agree", "cells", "nuclei", "optics", "scmos", "tuned")
RECORDS = (
    Record("nightly", BENCH / "nightly_record.json",
           (*LEARNED, *ASSIGNMENT, *GATES, "tracker/gated/matching*.py", "tracker/tracking.py"),
           "make nightly"),
    Record("assignments", BENCH / "certify_record.json", ASSIGNMENT, "make certify"),
    Record("detection", BENCH / "detection_record.json", DETECTION, "make detection-accuracy"),
    Record("whole way", BENCH / "whole_way_record.json", (*DETECTION, *LEARNED),
           "python tests/bench/whole_way.py --record"),
    Record("detection in uneven light", BENCH / "detection_uneven.json", DETECTION,
           "python -m detection_accuracy.uneven --record detection_uneven.json"),
    Record("constants of detection", BENCH / "detection_sensitivity.json", DETECTION,
           "python -m detection_accuracy.sensitivity"),
    Record("damaged files", BENCH / "fuzz_record.json",
           ("tracker/formats/**/*.py",), "make fuzz"),
    Record("disturbed commands", BENCH / "torture_record.json", OUTPUTS, "make torture"),
    Record("GPU", BENCH / "gpu_record.json", KERNELS, "make gpu-test"),
    Record("GPU, longer", BENCH / "gpu_long_record.json", KERNELS, "make gpu-bench"),
    Record("papers", BENCH / "papers_record.json", PAPERS, "python tests/bench/papers.py"),
    Record("learned links", BENCH / "accuracy" / "learned.npz", LEARNED, "make accuracy"),
    Record("movies of any size", BENCH / "scale_record.json",
           (*DETECTION, *GATES, "tracker/work/chunks/*.py"),
           "python tests/bench/benchmarks/bench_scale.py --record"),
    Record("measured motions", BENCH / "motions_record.json",
           (*LEARNED, "tracker/measuring/*.py"),
           "python tests/bench/benchmarks/bench_motions.py --record"),
    Record("watched movies", BENCH / "watch_record.json",
           (*DETECTION, "tracker/watching/*.py", "tracker/learned/live.py"),
           "python tests/bench/benchmarks/bench_watch.py latency --record"),
    Record("peers of detection", BENCH / "detection_peers.json",
           (*(f"tests/bench/detection_accuracy/{name}.py" for name in PEERS),
            *(f"simulate/{name}.py" for name in ("camera", "linkers/laptrack", "motions", "walks"))),
           "python -m detection_accuracy.run peers"),
)  # fmt: skip
"""Every record that later changes can make older than the code."""


def record_named(name: str) -> Record:
    """A record of the table.

    Examples
    --------
    >>> record_named("assignments").command
    'make certify'
    """
    return next(record for record in RECORDS if record.name == name)


def origins(record: Record, repository: Path = REPOSITORY) -> list[tuple[str, str]]:
    """Commit and date of each part of a record, without those stated twice."""
    path = repository / record.path
    text = str(np.load(path)["about"]) if path.suffix == ".npz" else path.read_text("utf-8")
    found = re.findall(r'"commit": "([0-9a-f]+)\+?",\s*"(?:scored_by": "[^"]*",\s*")?date": "([^"]+)"', text)
    return sorted(set(found))


def changed_sources(record: Record, repository: Path = REPOSITORY) -> list[str]:
    """Sources whose behaviour has changed since the oldest part of a record was measured.

    A commit that is not in the history, as after a rebase, is replaced by the last one of its day.
    """
    changed: set[str] = set()
    for commit, date in origins(record, repository):
        since = _commit_of(commit, date, repository)
        patterns = (f":(glob){pattern}" for pattern in record.sources)
        names = git(repository, "diff", "--name-only", since, "--", *patterns).stdout.splitlines()
        earlier = earlier_names(since, repository) if names else {}
        changed |= {name for name in names if _differs(since, name, earlier.get(name, name), repository)}
    return sorted(changed)


def earlier_names(commit: str, repository: Path) -> dict[str, str]:
    """The name at a commit of each file that was moved since, as Git finds them by content."""
    words = ["diff", "--find-renames", "--diff-filter=R", "--name-status", "-z", commit]
    found = git(repository, *words).stdout.split("\0")
    return dict(zip(found[2::3], found[1::3], strict=False))


@cache
def sentence_of(name: str) -> str:
    """What a page says of a record: its commits and dates, and whether the code has changed since."""
    record = record_named(name)
    stated = ", ".join(f"{commit[:10]} of {date}" for commit, date in origins(record))
    text = f"Measured at commit {stated}"
    if not (REPOSITORY / ".git").exists():
        return f"{text}."
    changed = changed_sources(record)
    older = f"; older than the code: {len(changed)} sources have changed since (`{record.command}` renews it)"
    return f"{text}{older if changed else ''}."


def behaviour(path: str, text: str) -> Any:
    """What remains of a source without comments, docstrings and the layout of its lines.

    Examples
    --------
    >>> behaviour("a.py", "x = 1  # one") == behaviour("a.py", "x = (1)")
    True
    >>> behaviour("a.cu", "int x; // one") == behaviour("a.cu", "int  x;")
    True
    """
    if path.endswith(".py"):
        return ast.dump(_without_docstrings(ast.parse(text)))
    if path.endswith((".cu", ".cuh")):
        return _COMMENT.sub("", text).split()
    return text


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [row for row in body if not _is_text(row)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return tree


def _is_text(row: ast.stmt) -> bool:
    return (
        isinstance(row, ast.Expr) and isinstance(row.value, ast.Constant) and isinstance(row.value.value, str)
    )


def _differs(commit: str, name: str, earlier: str, repository: Path) -> bool:
    path = repository / name
    if not path.exists():
        return True
    shown = git(repository, "show", f"{commit}:{earlier}", check=False)
    return shown.returncode != 0 or behaviour(name, shown.stdout) != behaviour(name, path.read_text("utf-8"))


def _commit_of(commit: str, date: str, repository: Path) -> str:
    if git(repository, "merge-base", "--is-ancestor", commit, "HEAD", check=False).returncode == 0:
        return commit
    day = git(repository, "rev-list", "-1", f"--before={date}T23:59:59Z", "HEAD").stdout.strip()
    return day or git(repository, "rev-list", "--max-parents=0", "HEAD").stdout.split()[0]


def git(repository: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run Git in a repository."""
    return subprocess.run(["git", *words], cwd=repository, capture_output=True, text=True, check=check)


def main() -> None:
    """Name the records that are older than the code; exit code 1 if there is one."""
    older = [(record, changed) for record in RECORDS if (changed := changed_sources(record))]
    for record, changed in older:
        names = ", ".join(changed)
        sys.stderr.write(f"{record.path}: older than the code ({names}). Run `{record.command}`.\n")
    sys.exit(bool(older))


if __name__ == "__main__":
    main()
