"""Tables of the pages, made from the code and from records: ``python docs/renew.py`` renews them.

So does it the names of files in the manifest of the plugin, of what the table of formats declares.

A table stands between ``<!-- table: NAME -->`` and ``<!-- /table -->``, so that pages can be read as they are
in the repository; NAME is a function of a module of tables.
The build renews what it shows, and states beneath a table the commit and date of its record, and whether the
code is newer (tests/bench/records.py).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import detection_tables
import paper_tables
import peer_tables
import scale_tables
import tables
import watch_tables

from outbid.formats import FORMATS, WRITTEN

REPOSITORY = Path(__file__).resolve().parent.parent
MANIFEST = REPOSITORY / "viewers" / "napari.yaml"
sys.path.insert(0, str(REPOSITORY / "tests" / "bench"))
import records  # noqa: E402

TABLES_OF = {
    "assignments": ("certified",),
    "detection": ("detection_grid", "detection_recorded", "detection_summary"),
    "whole way": ("whole_way",),
    "damaged files": ("faults",),
    "GPU": ("gpu_record",),
    "GPU, longer": ("gpu_scaling", "huge_movie"),
    "papers": ("paper_claims",),
    "learned links": ("accuracy", "posterior_developed", "posterior_reported"),
    "movies of any size": ("scale_measured",),
    "measured motions": ("motions_measured",),
    "watched movies": ("watched_cpu", "watched_latency", "watched_long"),
}
"""The tables that are made from a record of tests/bench/records.py."""
RECORD_OF = {table: name for name, tables in TABLES_OF.items() for table in tables}
_PLACE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- /table -->)", re.DOTALL)
_VALUE = re.compile(r"(<!-- value: (\w+) -->).*?(<!-- /value -->)")


def pages() -> list[Path]:
    """The pages that have tables."""
    found = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    return [page for page in found if "_run" not in page.parts and _PLACE.search(page.read_text("utf-8"))]


def renewed(text: str) -> str:
    """A page with its tables as the code and the records have them."""
    text = _PLACE.sub(lambda found: f"{found[1]}\n{_made(found[2])}\n\n{found[3]}", text)
    return _VALUE.sub(lambda found: f"{found[1]}{_made(found[2])}{found[3]}", text)


def dated(text: str) -> str:
    """A page with the age of the record beneath each table that is made from one."""
    return _PLACE.sub(lambda found: f"{found[0]}{_age(found[2])}", text)


def manifest(text: str) -> str:
    """The plugin's manifest with the names of files that are read and written."""
    for command, images in (("read_positions", False), ("read_movie", True)):
        names = dict.fromkeys(name for of in FORMATS if of.has_images == images for name in of.of_files)
        listed = f"filename_patterns: {json.dumps([*names])}"
        text = re.sub(rf"(command: outbid\.{command}\n +)filename_patterns: .*", rf"\g<1>{listed}", text)
    return re.sub("filename_extensions: .*", f"filename_extensions: {json.dumps([*WRITTEN])}", text)


def _age(table: str) -> str:
    return f"\n\n{records.sentence_of(RECORD_OF[table])}\n" if table in RECORD_OF else ""


def _made(name: str) -> str:
    """A table, or a value in a sentence (``<!-- value: NAME -->``)."""
    modules = (tables, paper_tables, peer_tables, detection_tables, scale_tables, watch_tables)
    module = next(each for each in modules if hasattr(each, name))
    return str(getattr(module, name)()).strip()


if __name__ == "__main__":
    for page in pages():
        page.write_text(renewed(page.read_text("utf-8")), "utf-8")
    MANIFEST.write_text(manifest(MANIFEST.read_text("utf-8")), "utf-8")
