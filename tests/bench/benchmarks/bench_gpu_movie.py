"""The command `outbid track` on a GPU, from a Parquet file of a huge movie to a Parquet file of its tracks.

By default the movie has 100 frames of 1,000,000 particles, uniform at density 1; lengths are in units of
density^(-1/3). The displacement, the standard deviation of a step along one axis (kappa), is .5, the gate
1.5; 5 % of the particles are replaced in every frame, rows of a frame are shuffled, coordinates are in single
precision. `outbid track --device gpu` links it in memory and with --stream. The seconds of the stages are
reported by the command (`--json`): those of the thread that numbers the tracks and waits for the others, and,
as `beside`, those of the threads that read, link and write at the same time. `start` is the remaining time,
Python and imports; compilation is not timed. `disk_gb_s` is the speed at which the disk takes the bytes of
the movie. Takes about two minutes, 15 GB of disk and 20 GB of memory; `make gpu-bench` runs it, `make
gpu-test` does not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import measure
import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

OUTBID = "from outbid.cli import main; main()"
MODES: dict[str, list[str]] = {"stream": ["--stream"], "in memory": []}


def write_movie(path: Path, frames: int, particles: int, displacement: float) -> measure.Row:
    """Write a row group for each frame; a thread writes while the next frame is simulated."""
    start = time.perf_counter()
    rng = np.random.default_rng(0)
    side = np.float32(particles ** (1 / 3))
    point = side * rng.random((particles, 3), dtype=np.float32)
    schema = pa.schema([("frame", pa.int32()), *((axis, pa.float32()) for axis in "zyx")])
    with (
        pa.parquet.ParquetWriter(path, schema, use_dictionary=["frame"]) as writer,
        ThreadPoolExecutor(1) as pool,
    ):
        writing: Future[None] | None = None
        for frame in range(frames):
            if frame:
                point += np.float32(displacement) * rng.standard_normal(point.shape, dtype=np.float32)
                replaced = np.nonzero(rng.random(particles, dtype=np.float32) < 0.05)[0]
                point[replaced] = side * rng.random((len(replaced), 3), dtype=np.float32)
            if writing is not None:
                writing.result()
            writing = pool.submit(_write, writer, frame, point[rng.permutation(particles)])
        if writing is not None:
            writing.result()
    seconds = time.perf_counter() - start
    return {"who": "simulated", "seconds": round(seconds, 1), "gb": gigabytes(path), "disk_gb_s": disk(path)}


def _write(writer: pa.parquet.ParquetWriter, frame: int, point: NDArray[np.float32]) -> None:
    columns = [np.full(len(point), frame, np.int32), *point.T]
    writer.write_table(pa.table([pa.array(column) for column in columns], schema=writer.schema))


def gigabytes(path: Path) -> float:
    return round(path.stat().st_size / 1e9, 2)


def disk(path: Path) -> float:
    """Gigabytes a second at which a copy of the file reaches the disk."""
    copy = path.with_suffix(".copy")
    start = time.perf_counter()
    with path.open("rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 24)
        target.flush()
        os.fsync(target.fileno())
    seconds = time.perf_counter() - start
    copy.unlink()
    return round(path.stat().st_size / 1e9 / seconds, 2)


def command(source: Path, output: Path, options: list[str], limit: float) -> measure.Row:
    """The summary of the command, its wall time and its peak memory."""
    words = ["track", source, "-o", output, *options, "--json", "-q"]
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", OUTBID, *map(str, words)], stdout=subprocess.PIPE)
    ending = threading.Timer(limit, process.kill)
    ending.start()
    with most_gpu_memory() as gpu_gb:
        printed = process.stdout.read() if process.stdout else b""
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    ending.cancel()
    if process.returncode:
        return {"seconds": f"ended with {process.returncode} after {seconds:.0f} s"}
    summary = json.loads(printed)
    stages = summary["stages"] | {"start": seconds - sum(summary["stages"].values())}
    row: measure.Row = {"seconds": round(seconds, 1)}
    row |= {f"{stage}_s": round(spent, 2) for stage, spent in stages.items()}
    row |= {f"beside_{stage}_s": round(spent, 2) for stage, spent in summary["beside"].items()}
    row |= {f"{stage}_percent": round(100 * spent / seconds, 1) for stage, spent in stages.items()}
    row |= {name: summary[name] for name in ("links", "tracks", "worst_gap", "fallbacks")}
    row |= {name: summary[name] for name in ("batches", "planned_bytes") if name in summary}
    peaks = {"peak_gb": round(used.ru_maxrss / 2**20, 2), "peak_gpu_gb": max(gpu_gb, default=0)}
    return row | peaks | {"gb": gigabytes(output)}


@contextmanager
def most_gpu_memory() -> Iterator[list[float]]:
    """Gigabytes in use on the first GPU, sampled five times a second; empty if there is no GPU."""
    found: list[float] = []
    if shutil.which("nvidia-smi") is None:
        yield found
        return
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    ask = [
        "nvidia-smi",
        "--query-gpu=memory.used",
        "--format=csv,noheader,nounits",
        "-lms",
        "200",
        "-i",
        first,
    ]
    with subprocess.Popen(ask, stdout=subprocess.PIPE, text=True) as asking:
        yield found
        asking.terminate()
        lines = asking.stdout.read().split() if asking.stdout else []
    found += [round(int(line) / 1024, 1) for line in lines if line.isdigit()]


def same_tracks(paths: list[Path]) -> bool:
    """Whether the files give every detection the same track."""
    first, *others = (pa.parquet.read_table(path, columns=["track_id"]) for path in paths)
    return all(first.equals(other) for other in others)


def table(chosen: argparse.Namespace, folder: Path) -> Iterator[measure.Row]:
    source, first = folder / "movie.parquet", folder / "first.parquet"
    write_movie(first, 3, 1000, chosen.displacement)
    gate = ["--max-distance", str(chosen.gate)]
    for device in chosen.devices:  # compiles
        command(first, folder / f"{device}_first.parquet", [*gate, "--device", device], chosen.limit)
    yield write_movie(source, chosen.frames, chosen.particles, chosen.displacement)
    outputs = []
    for device in chosen.devices:
        for mode, options in MODES.items():
            outputs.append(folder / f"{device}_{len(outputs)}.parquet")
            row = command(source, outputs[-1], [*gate, *options, "--device", device], chosen.limit)
            yield {"who": f"{device}, {mode}"} | row
    yield {"who": "all", "same_tracks": same_tracks([path for path in outputs if path.exists()])}


def recorded(rows: Iterable[measure.Row], chosen: argparse.Namespace) -> Iterator[measure.Row]:
    """The rows; each is recorded at once, so that an interrupted run has its first rows in the record."""
    from measure_gpu import add_to_long_record

    size = {name: getattr(chosen, name) for name in ("frames", "particles", "displacement", "gate")}
    done: list[measure.Row] = []
    for row in rows:
        done.append(row)
        if any("worst_gap" in row for row in done):
            add_to_long_record("huge_movie", {**size, "rows": done})
        yield row


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--record", action="store_true", help="keep the table in gpu_long_record.json")
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--particles", type=int, default=1_000_000)
    parser.add_argument("--displacement", type=float, default=0.5)
    parser.add_argument("--gate", type=float, default=1.5)
    parser.add_argument("--devices", nargs="+", default=["gpu"], help="gpu, cpu")
    parser.add_argument("--folder", type=Path, help="where to work; default: the system's for such files")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        rows = table(chosen, Path(name))
        measure.show(recorded(rows, chosen) if chosen.record else rows)


if __name__ == "__main__":
    main()
