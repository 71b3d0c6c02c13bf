"""Movies of any size: what `bench_scale.py` measured, and time and traffic of others by these rates."""

from __future__ import annotations

from typing import Any

from tables import Row, origin, record, short, shown, table

SIZES = (10**6, 10**7, 10**8, 10**9)
WORKERS = (1, 8, 64)
IMAGES = 10**13
"""Bytes of the movie of images that is extrapolated, two a voxel."""


def scale_measured() -> str:
    """The runs of linking, and the rates of detection."""
    seen = record("scale")
    alone = {_run(row): row["seconds"] for row in seen["linking"] if row["workers"] == 1}
    columns = {
        "rows": "{rows:,}", "on": lambda row: row["device"].upper(),
        "workers": lambda row: row["workers"] or "none, this process",
        "seconds": "{seconds:.1f}", "rows/s": lambda row: f"{row['rows'] / row['seconds']:,.0f}",
        "× one worker": lambda row: f"{alone[_run(row)] / row['seconds']:.2f}",
        "peak of a worker": lambda row: f"{row['peak_bytes'] / 1e9:.2f} GB",
        "peak of the coordinator": lambda row: f"{row['own_peak_bytes'] / 1e9:.2f} GB",
        "commit": lambda row: short(row["commit"]) + (" ¹" if row.get("is_beside_other_work") else ""),
    }  # fmt: skip
    found = seen["images"]
    return (
        f"{shown(seen['linking'], columns)}\n\n¹ Other cores of the machine had work at the same time.\n\n"
        f"Detection: {1e-6 / _of_a_voxel(seen):.3g} million voxels a second for each thread. "
        f"{found['bytes'] / 1e9:.2g} GB of raw voxels, rendered on demand and never written to a disk, "
        f"were detected and tracked in {found['wall_seconds'] / 60:.0f} minutes, {found['lanes']} chunks of "
        f"frames at a time, each by a process of {found['threads']} threads. The peak memory of one process "
        f"and the coordinator together was {found['peak_bytes_at_an_eighth'] / 1e9:.2f} GB after an eighth "
        f"of the chunks and {found['peak_bytes'] / 1e9:.2f} GB after all.\n\n"
        f"Measured on {origin(seen)}."
    )


def scale_plan() -> str:
    """Minutes of other movies by the rates of the largest run of one worker on the CPU."""
    seen = record("scale")
    row = max(
        (row for row in seen["linking"] if (row["workers"], row["device"]) == (1, "cpu")),
        key=lambda each: each["rows"],
    )
    work = row["links_seconds"] + row["parts_seconds"]  # which workers share; one process does the rest
    traffic = (row["bytes_in"] + row["bytes_out"]) / row["rows"]
    lines = [
        (
            f"{size:,} detections", f"{traffic * size / 1e9:.3g} GB",
            *(f"{(work / n + row['seconds'] - work) * size / row['rows'] / 60:.2g}" for n in WORKERS),
        )
        for size in SIZES
    ]  # fmt: skip
    hours = (_of_a_voxel(seen) * IMAGES / 2 / n / 3600 for n in WORKERS)
    lines.append(
        (f"{IMAGES / 1e12:g} TB of images (hours)", f"{IMAGES / 1e9:,.0f} GB", *(f"{n:.3g}" for n in hours))
    )
    return table(("movie", "files", *(f"minutes, {n} workers" for n in WORKERS)), lines)


def _of_a_voxel(seen: Row) -> float:
    """Seconds of each thread, spots and all, in the large movie of raw voxels."""
    found = seen["images"]
    return found["threads"] * (found["detect_seconds"] + found["track_seconds"]) / found["voxels"]


def _run(row: Row) -> tuple[Any, ...]:
    """Rows, commit and device: what is compared with one worker."""
    return row["rows"], row["commit"], row["device"]
