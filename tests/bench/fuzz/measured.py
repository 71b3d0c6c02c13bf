"""What of the readers' branches the cases reach, by coverage.py; writers are left out."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

WRITERS = (
    "parts", "outputs", "trackmate_write", "tiff_write", "parquet_write", "geff_write", "unknown",
)  # fmt: skip
"""Modules of `outbid.formats` that read nothing: tests of outputs and of kills judge them."""
_CONTAINERS = ("czi", "hdf5", "imaris", "lif", "nd2", "stacks", "zarr")
"""Readers whose packages may be missing, by the variants of which their own tests go: not counted."""
_LEFT_OUT = (
    r"def (_)?write", r"def table_of_", r"def _table\(", r"def _at_targets", r"def _parents",
    r"def _floats_distinct", r"def feature_column", r"def declare_no_fill",
    r"def (check_output|_output|_read_with|read_with|input_of|sha256_of|is_record|to_stand_beside)\(",
    r"def (record_bytes|_plain|families|refuse_unwritable|columns_from|text_of_columns)\(",
    r"def (detections_in_parts|rows_between|frames_in|_whole_frames|row_count)\(", r"def foreign\(",
    r"def (takes_columns|check_input|free_memory|is_feature|frames|package|missing)\(", r"class .*Protocol",
)  # fmt: skip
"""What in the readers' modules writes, streams or asks for packages: not reached by reading a file whole."""


@contextmanager
def measuring(into: dict[str, float]) -> Iterator[None]:
    """Measure what runs inside; percent of the branches by module go to `into`, and of all as "all".

    The readers must not have been imported before: else the lines that define them would be missing.
    """
    import coverage

    spec = find_spec("outbid")
    assert spec is not None
    folder = Path(str(spec.origin)).parent / "formats"
    files = [str(file) for file in folder.rglob("*.py") if file.stem not in (*WRITERS, *_CONTAINERS)]
    watch = coverage.Coverage(branch=True, data_file=None, config_file=False, include=files)
    for pattern in _LEFT_OUT:
        watch.exclude(pattern)
    with watch.collect():
        yield
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        watch.json_report(outfile=report.name)
        found = json.load(report)
    counts = {Path(name).stem: of["summary"] for name, of in found["files"].items()} | {
        "all": found["totals"]
    }
    into.update({name: of["percent_branches_covered"] for name, of in counts.items() if of["num_branches"]})
