"""Time, memory and traffic of movies of any size, from the rates in tests/scale_record.json.

Rates are per row of detections and per voxel, on one thread; workers share the work evenly, but for the steps
that one process does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

RECORD = Path(__file__).resolve().parents[1] / "tests" / "scale_record.json"
SIZES = (10**6, 10**7, 10**8, 10**9)
WORKERS = (1, 8, 64)
IMAGE_BYTES = 10**13
VOXEL_BYTES = 2


def rates(record: dict[str, Any]) -> dict[str, float]:
    """Seconds and bytes a row, and seconds a voxel, from the largest run of one worker on the CPU.

    Of two alike, the one of the record's own commit is taken.
    """
    on_cpu = [row for row in record["linking"] if row.get("device") != "gpu"]
    alone = [row for row in on_cpu if row["workers"] == 1] or on_cpu
    own = record.get("commit")
    row = max(alone, key=lambda each: (each["rows"], each.get("commit", own) == own))
    busy = row["links_seconds"] + row["parts_seconds"]
    return {
        "work": busy / row["rows"],
        "serial": max(row["seconds"] - busy, 0.0) / row["rows"],
        "bytes_in": row["bytes_in"] / row["rows"],
        "bytes_out": row["bytes_out"] / row["rows"],
        "voxel": _seconds_of_a_voxel(record),
    }


def _seconds_of_a_voxel(record: dict[str, Any]) -> float:
    """Of each thread, spots and all: from the large movie of raw voxels, if it was measured."""
    if "images" not in record:
        return record["detection"]["seconds"] / record["detection"]["voxels"]
    found = record["images"]
    return found["threads"] * (found["detect_seconds"] + found["track_seconds"]) / found["voxels"]


def plan(record: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Rows of the table: a size, the files, the minutes by workers."""
    per = rates(record)
    for size in SIZES:
        minutes = ((per["work"] / workers + per["serial"]) * size / 60 for workers in WORKERS)
        files = (per["bytes_in"] + per["bytes_out"]) * size / 1e9
        yield (
            f"{size:,} detections",
            f"{files:.3g} GB",
            *(f"{each:.2g}" if each < 100 else f"{each:.0f}" for each in minutes),
        )
    voxels = IMAGE_BYTES / VOXEL_BYTES
    hours = (per["voxel"] * voxels / workers / 3600 for workers in WORKERS)
    yield "10 TB of images (hours)", f"{IMAGE_BYTES / 1e9:,.0f} GB", *(f"{each:.3g}" for each in hours)


def table(record: dict[str, Any]) -> str:
    """In Markdown."""
    return markdown(("movie", "files", *(f"minutes, {workers} workers" for workers in WORKERS)), plan(record))


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows as a table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ("---",) * len(heads), *rows])


def measured(record: dict[str, Any]) -> str:
    """The runs, in Markdown."""
    alone = {_run(row): row["seconds"] for row in record["linking"] if row["workers"] == 1}
    lines = [
        (
            f"{row['rows']:,}", row.get("device", "").upper(),
            f"{row['workers']}" if row["workers"] else "none, this process",
            f"{row['seconds']:.1f}", f"{row['rows'] / row['seconds']:,.0f}",
            f"{alone[_run(row)] / row['seconds']:.2f}" if _run(row) in alone else "",
            f"{row['peak_bytes'] / 1e9:.2f} GB", f"{row['own_peak_bytes'] / 1e9:.2f} GB",
            _run(row)[1][:10] + (" ¹" if row.get("is_beside_other_work") else ""),
        )
        for row in record["linking"]
    ]  # fmt: skip
    aside = any(row.get("is_beside_other_work") for row in record["linking"])
    said = "¹ Other cores of the machine had work at the same time.\n\n" if aside else ""
    speed = 1e-6 / _seconds_of_a_voxel(record)
    said += f"Detection: {speed:.3g} million voxels a second for each of the threads."
    if "images" in record:
        said += _of_images(record["images"])
    if record.get("load", 0) > record.get("cores", 0) / 4:
        load, cores = record["load"], record["cores"]
        said += (
            f" Other work ran on the machine at the same time (load {load:.1f} on {cores} cores before the "
            "start), so these rates are lower bounds, and two workers against one say nothing."
        )
    heads = (
        "rows", "on", "workers", "seconds", "rows/s", "× one worker", "peak of a worker", "peak of the giver",
        "commit",
    )  # fmt: skip
    return f"{markdown(heads, lines)}\n\n{said}"


def _run(row: dict[str, Any]) -> tuple[int, str, str]:
    """Rows, commit and device: what is compared with one worker."""
    return row["rows"], row.get("commit", ""), row.get("device", "")


def _of_images(found: dict[str, Any]) -> str:
    """What was measured of raw voxels, and what fifty gigabytes would take at that rate."""
    seconds, threads = found["detect_seconds"] + found["track_seconds"], found["threads"]
    speed = found["voxels"] / seconds
    hours = 50e9 / VOXEL_BYTES / speed / 3600
    said = (
        f" {found['bytes'] / 1e9:.2g} GB of raw voxels, rendered as they are asked for and never on a disk, "
        f"were detected and tracked in {seconds / 3600:.2g} hours by {threads} threads, {speed / 1e6:.3g} "
        f"million voxels a second; the peak of memory was {found['peak_bytes_at_an_eighth'] / 1e9:.2f} GB "
        f"after an eighth of the ranges and {found['peak_bytes'] / 1e9:.2f} GB after all."
    )
    if found["lanes"] > 1:
        said += (
            f" {found['lanes']} ranges of frames were done at the same time, each by a process on {threads} "
            "cores of its own; seconds are those of all added up, and memory is that of one and of the "
            "process that gives out the work."
        )
    if round(found["bytes"] / 1e9) < 50:
        said += f" At that rate 50 GB take {hours:.2g} hours; that is extrapolated."
    return said
