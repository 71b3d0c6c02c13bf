"""Rates of work in ranges of frames: by one process, and by 1, 2, 4, … workers of dask.distributed.

A movie of random walks, 250,000 particles a frame at density 1, step .2, gate 1 (lengths in units of
density^(-1/3)), is written as Parquet and linked by `track_in_ranges` into parts, by this process with one
thread and by workers of one thread each. Start of the cluster and compilation are not timed. Bytes are those
of the files. Memory is the peak of this process, and of the largest of its workers. Then the spots of a
movie of images are found, which are rendered as they are asked for and are never on a disk. `--record` writes
tests/scale_record.json, from which docs/scale_plan.py makes its tables.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType

import measure
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from outbid import DetectionSettings, TrackingSettings, detect
from outbid.formats.records import sha256_of
from outbid.movies.jobs import TrackJob
from outbid.ranges.cluster import Workers, connected
from outbid.ranges.movie import How, track_in_ranges
from outbid.ranges.tasks import here

REPOSITORY = Path(__file__).resolve().parents[2]
RECORD = REPOSITORY / "tests" / "scale_record.json"
SOURCES = tuple(f"tracker/ranges/{name}.py" for name in ("tasks", "chains", "movie", "cluster"))
PARTICLES, STEP, GATE = 250_000, 0.2, 1.0
JOB = TrackJob(TrackingSettings(max_distance=GATE))


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


@contextmanager
def runner(workers: int) -> Iterator[How]:
    """Do it here, or by so many workers, which have linked something before."""
    if not workers:
        yield How(here)
        return
    with connected(Workers("local", count=workers)) as cluster:
        cluster.client.run(warm)
        yield How(cluster)


def warm() -> None:
    """Load the kernels."""
    from outbid import Detections, TrackingSettings, track

    track(Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]]), TrackingSettings(max_distance=2.0))


def linked(source: Path, rows: int, workers: int, folder: Path) -> dict[str, object]:
    """One run: seconds in all, of hashing, and of the two kinds of tasks."""
    output = folder / "out.parquet"
    with runner(workers) as how:
        start = time.perf_counter()
        stats = track_in_ranges(source, output, JOB, how, parts=True)
        seconds = time.perf_counter() - start
        peaks = [peak()] if isinstance(how.run, FunctionType) else how.run.client.run(peak).values()
    tasks = json.loads((folder / "out.parquet.tasks.json").read_text())["tasks"]
    spent = {
        kind: sum(task["ended"] - task["begun"] for task in tasks if task["file"].startswith(kind))
        for kind in ("links", "part")
    }
    row = {
        "rows": rows, "workers": workers, "ranges": stats["ranges"], "seconds": seconds,
        "links_seconds": spent["links"], "parts_seconds": spent["part"],
        "bytes_in": size_of(source), "bytes_out": size_of(output), "tracks": stats["tracks"],
        "peak_bytes": max(peaks), "own_peak_bytes": peak(),
    }  # fmt: skip
    shutil.rmtree(output)
    return row


def rendered(frames: int, shape: tuple[int, int, int]) -> Iterator[np.ndarray]:
    """Images of bright spots that move, each made when it is asked for."""
    rng = np.random.default_rng(1)
    base = rng.normal(100, 5, shape).astype(np.float32)
    centres = rng.uniform(8, np.array(shape) - 8, (200, 3))
    grid = np.stack(np.meshgrid(*[np.arange(-6, 7)] * 3, indexing="ij"), axis=-1)
    for frame in range(frames):
        image = np.roll(base, 17 * frame, axis=2)
        for centre in centres + np.array([0, 0, frame % 4]):
            at = np.rint(centre).astype(int)
            spot = 80 * np.exp(-(((grid + at - centre) ** 2).sum(axis=-1)) / 8)
            image[tuple(slice(a - 6, a + 7) for a in at)] += spot.astype(np.float32)
        yield image.astype(np.uint16)


def detected(frames: int, shape: tuple[int, int, int]) -> dict[str, object]:
    """Voxels a second on one thread, without the time that rendering takes."""
    detect(rendered(1, shape), DetectionSettings(radius=3.5), workers=1)
    start = time.perf_counter()
    count = sum(1 for _ in rendered(frames, shape))
    render = time.perf_counter() - start
    start = time.perf_counter()
    seen, _ = detect(rendered(count, shape), DetectionSettings(radius=3.5), workers=1)
    seconds = time.perf_counter() - start - render
    return {"voxels": count * int(np.prod(shape)), "seconds": seconds, "spots": len(seen)}


def hashed(path: Path) -> dict[str, object]:
    """The rate of naming an input by its content."""
    start = time.perf_counter()
    sha256_of(path)
    return {"bytes": path.stat().st_size, "seconds": time.perf_counter() - start}


def origin() -> dict[str, object]:
    """Commit, date, machine and the hashes of the sources that are measured."""
    hashes = {name: hashlib.sha256((REPOSITORY / name).read_bytes()).hexdigest() for name in SOURCES}
    return {
        "commit": measure.commit(), "date": measure.today(), "machine": measure.provenance(),
        "sources": hashes, "load": os.getloadavg()[0], "cores": os.cpu_count(),
    }  # fmt: skip


def main() -> None:
    """Measure, print, and perhaps record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--frames", type=int, default=4, help="of images")
    parser.add_argument("--record", type=Path, nargs="?", const=RECORD)
    given = parser.parse_args()
    warm()
    rows: list[dict[str, object]] = []
    record = origin() | {"detection": detected(given.frames, (64, 512, 512)), "linking": rows}
    print(record["detection"], flush=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for count in map(int, given.rows):
            source = folder / "movie.parquet"
            write_movie(source, count)
            record["hashing"] = hashed(source)
            for workers in given.workers if count == int(given.rows[-1]) else [0]:
                rows.append(linked(source, count, workers, folder))
                print(rows[-1], flush=True)
                if given.record:  # as far as it is, for a run may be ended
                    given.record.write_text(json.dumps(record, indent=1) + "\n")
            source.unlink()


def peak() -> int:
    """Bytes of this process, at most so far."""
    # Not by getrusage, which begins with the peak of the process that started this one.
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


if __name__ == "__main__":
    main()
