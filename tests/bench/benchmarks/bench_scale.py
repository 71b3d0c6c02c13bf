"""Rates of work in ranges of frames: by one process, and by 1, 2, 4, … workers of dask.distributed.

A movie of random walks, 250,000 particles a frame at density 1, step .2, gate 1 (lengths in units of
density^(-1/3)), is written as Parquet and linked by `track_in_chunks` into parts, by this process with one
thread and by workers of one thread each, on the CPU or (`--devices cpu gpu`) on one GPU that all workers
share. Start of the cluster, of CUDA, and compilation are not timed. Bytes are those of the files. Memory is
the peak of this process in a run, and of the largest of its workers (of images: bench_voxels.py). `--record`
writes tests/bench/scale_record.json, from which docs/scale_tables.py makes its tables, and keeps what that
has of other devices.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType

import measure
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from outbid import TrackingSettings
from outbid.work.chunks.movie import How, track_in_chunks
from outbid.work.chunks.tasks import here
from outbid.work.cluster import Workers, connected
from outbid.work.jobs import TrackJob

REPOSITORY = Path(__file__).resolve().parents[3]
RECORD = REPOSITORY / "tests" / "bench" / "scale_record.json"
PARTICLES, STEP, GATE = 250_000, 0.2, 1.0


def write_movie(path: Path, rows: int) -> None:
    """A row group for each frame."""
    rng = np.random.default_rng(0)
    count = min(PARTICLES, rows // 4)
    side = count ** (1 / 3)
    place = rng.uniform(0, side, (count, 3)).astype(np.float32)
    schema = pa.schema([("frame", pa.int32()), *((axis, pa.float32()) for axis in "zyx")])
    with pa.parquet.ParquetWriter(path, schema) as writer:
        for frame in range(rows // count):
            place += rng.normal(0, STEP, place.shape).astype(np.float32)
            columns = [np.full(count, frame, np.int32), *np.ascontiguousarray(place.T)]
            writer.write_table(pa.table([pa.array(each) for each in columns], schema=schema))


def size_of(path: Path) -> int:
    """Bytes of a file, or of all in a folder."""
    return sum(file.stat().st_size for file in ([path] if path.is_file() else path.iterdir()))


def job_on(device: str) -> TrackJob:
    """Links with the gate; where is stated, for `auto` takes a GPU wherever there is one."""
    return TrackJob(TrackingSettings(max_distance=GATE, device=device))


@contextmanager
def runner(workers: int, device: str) -> Iterator[How]:
    """Do it here, or by so many workers, which have linked something before."""
    if not workers:
        yield How(here)
        return
    with connected(Workers("local", count=workers)) as cluster:
        cluster.client.run(warm, device)
        yield How(cluster)


def warm(device: str = "cpu") -> None:
    """Import and compile all that tasks use; start CUDA, which takes the longer the more do it at once."""
    with tempfile.TemporaryDirectory() as made:
        source = Path(made) / "movie.parquet"
        write_movie(source, 4000)
        job = job_on(device)
        track_in_chunks(source, Path(made) / "out.parquet", job, How(here, rows=2000), parts=True)


def linked(source: Path, rows: int, workers: int, folder: Path, device: str) -> dict[str, object]:
    """One run: seconds in all, of hashing, and of the two kinds of tasks."""
    output = folder / "out.parquet"
    with runner(workers, device) as how:
        forget_peak()
        start = time.perf_counter()
        stats = track_in_chunks(source, output, job_on(device), how, parts=True)
        seconds = time.perf_counter() - start
        peaks = [peak()] if isinstance(how.run, FunctionType) else how.run.client.run(peak).values()
    tasks = json.loads((folder / "out.parquet.tasks.json").read_text())["tasks"]
    spent = {
        kind: sum(task["ended"] - task["begun"] for task in tasks if task["file"].startswith(kind))
        for kind in ("links", "part")
    }
    row = {
        "rows": rows, "workers": workers, "device": device, "ranges": stats["ranges"], "seconds": seconds,
        "links_seconds": spent["links"], "parts_seconds": spent["part"],
        "bytes_in": size_of(source), "bytes_out": size_of(output), "tracks": stats["tracks"],
        "peak_bytes": max(peaks), "own_peak_bytes": peak(), "commit": measure.commit(),
    }  # fmt: skip
    shutil.rmtree(output)
    return row


def main() -> None:
    """Measure, print, and perhaps record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--devices", nargs="+", default=["cpu"], help="cpu, gpu")
    parser.add_argument("--record", type=Path, nargs="?", const=RECORD)
    given = parser.parse_args()
    warm()
    rows: list[dict[str, object]] = []
    kept = json.loads(RECORD.read_text())
    older = [row for row in kept["linking"] if row["device"] not in given.devices]
    record = measure.stated() | {name: kept[name] for name in ("images",) if name in kept}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for count in map(int, given.rows):
            source = folder / "movie.parquet"
            write_movie(source, count)
            cases = [(workers, device) for device in given.devices for workers in given.workers]
            for workers, device in cases if count == int(given.rows[-1]) else [(0, "cpu")]:
                rows.append(linked(source, count, workers, folder, device))
                print(rows[-1], flush=True)
                if given.record:  # as far as it is, for a run may be ended
                    whole = record | {"linking": [*rows, *older]}
                    given.record.write_text(json.dumps(whole, indent=1) + "\n")
            source.unlink()


def forget_peak() -> None:
    """Count the peak of this process from here on, where Linux allows that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """Bytes of this process, at most so far."""
    # Not by getrusage, which begins with the peak of the process that started this one.
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


if __name__ == "__main__":
    main()
