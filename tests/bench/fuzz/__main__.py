"""``python -m fuzz``, in tests/bench/: damaged files of every format, for some seconds or by number."""

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
    parser.add_argument("--measure", action="store_true", help="measure what of the readers is reached")
    given = parser.parse_args()
    reached: dict[str, float] = {}
    warnings.simplefilter("ignore")  # of NumPy and zarr, about odd headers
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if given.measure:  # before the readers are imported
            stack.enter_context(measuring(reached))
        from .judge import limits
        from .kinds import KINDS
        from .run import made_seeds, run

        stack.enter_context(limits())
        seeds = made_seeds(scratch, given.kinds or KINDS)
        report = run(seeds, range(given.first, given.first + given.count), given.seconds, given.keep)
    sys.stdout.write(json.dumps({**report, "reached": reached}) + "\n")


if __name__ == "__main__":
    main()
