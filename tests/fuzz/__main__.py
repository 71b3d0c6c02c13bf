"""``python -m fuzz``, in the folder tests: damaged files of every format, for some seconds or by number."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from contextlib import ExitStack
from pathlib import Path

from .measured import measuring


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", help="formats; all without it")
    parser.add_argument("--first", type=int, default=0, help="number of the first case of each format")
    parser.add_argument("--count", type=int, default=200, help="cases of each format")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--keep", type=Path, help="folder for the files of each fault")
    parser.add_argument(
        "--measure",
        choices=["quietly", "lines"],
        help="measure what of the readers is reached; name the lines that are not",
    )
    given = parser.parse_args()
    reached: dict[str, float] = {}
    warnings.simplefilter("ignore")  # of NumPy and zarr, about odd headers
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        measured = stack.enter_context(ExitStack())
        if given.measure:
            measured.enter_context(measuring(reached, sys.stderr if given.measure == "lines" else None))
        from .judge import limits
        from .kinds import KINDS
        from .run import made_seeds, run

        stack.enter_context(limits())
        seeds = made_seeds(scratch, given.kinds or list(KINDS))
        account = run(seeds, given.first, given.count, given.seconds, given.keep)
        measured.close()
    report = {"tally": account.tally, "finds": account.finds, "reached": reached}
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
