"""Compile the kernels of a new user's first steps; write how many, and for which versions and package.

``build_wheel.py`` runs this in a process of its own, for Numba reads the name of the CPU at its import.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from numba.core import config

import outbid
from outbid.compute.compiling import kernels_counted
from outbid.compute.shipped import versions
from outbid.data import sample


def first_steps() -> int:
    """Warm up, track the sample, write, read and score the tracks; how many kernels were compiled here."""
    counts: list[int] = []
    with kernels_counted(counts.append), tempfile.TemporaryDirectory() as folder:
        outbid.warm_up(processes=1)  # what is replaced here is so in this process alone
        truth, output = outbid.read_tracks(sample("walks")), Path(folder) / "tracks.csv"
        outbid.write_tracks(output, outbid.track(truth.detections).tracks)
        outbid.score(outbid.read_tracks(output), truth)
    return len(counts)


if __name__ == "__main__":
    if config.USING_SVML:
        sys.exit("Intel's SVML is installed: the kernels would need it wherever they run.")
    facts = {"compiled": first_steps(), "package": outbid.__file__, "versions": versions()}
    sys.stdout.write(json.dumps(facts))
