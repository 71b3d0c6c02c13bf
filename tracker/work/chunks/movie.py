"""Track or detect a movie in chunks of frames, from file to file, with any task runner."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ... import formats
from ...compute.threads import begun
from ...compute.timing import lap
from ...detection import detect
from ...errors import SettingsError
from ...formats.files.outputs import remove_folder, write_whole, write_whole_folder
from ...formats.files.records import record_bytes
from ...formats.graphs.geff_write import write_parts
from ...formats.tables import parquet
from ...formats.tables.parts import DRAFT, begin_folder
from ...particles.detections import Detections
from ...particles.tracks import Tracks
from ...settings.device import GPU_FROM_DETECTIONS, GPU_FROM_DETECTIONS_LEARNED, GPU_FROM_VOXELS, device_for
from ..jobs import DetectJob, TrackJob, recorded
from ..stream import stats_of
from . import learned
from .chains import Joining
from .files import WRITERS, ChunkFiles, join_parts, part_file, recorded_beside
from .learned import LearnChunk, LinkLearned
from .plan import Chunk, plan
from .tasks import DetectChunk, LinkChunk, Runner, Task, WriteChunk, here, side_by_side

_LOG = logging.getLogger("outbid")
ROWS = 1_000_000
"""Rows of a chunk: a task then needs about a gigabyte of memory and some seconds."""
_GRAPH = ".geff"
_VOXELS = 100_000_000
"""Voxels in a detection task: some seconds of work."""


@dataclass(frozen=True)
class How:
    """Options of execution; none of them changes the result.

    Parameters
    ----------
    run : Runner
        Does the tasks: `here`, or those of `outbid.work.cluster`.
    rows : int, optional
        Rows of a chunk. Default: some seconds of work, by what is done and where.
    overwrite, resume : bool
        Whether the output may be there, and whether to go on where an earlier run stopped.
    threads : int
        Of each task.
    progress : callable, optional
        Given tasks done, and tasks in all.
    """

    run: Runner = here
    rows: int | None = None
    overwrite: bool = False
    resume: bool = False
    threads: int = 1
    progress: Callable[[int, int], None] | None = None


def track_in_chunks(
    source: Path, output: Path, job: TrackJob, how: How = How(), *, parts: bool = False
) -> dict[str, Any]:
    """Link a Parquet table of detections chunk by chunk; with a gate, to the bytes of `outbid track`.

    Parameters
    ----------
    source : Path
        Parquet, one file or a folder of parts, whose frames do not decrease.
    output : Path
        Parquet, or GEFF, which is written a group of rows at a time.
    job : TrackJob
        Without a `max_distance` the model is learned from three parts, as `learned` says; then the
        tracks are put together here.
    how : How
    parts : bool
        Leave the parts that the tasks write side by side: the output is a folder of files, which every
        command reads as one.

    Returns
    -------
    dict
        As `TrackingRun.stats`; and ``ranges``, the number of chunks.

    Raises
    ------
    SettingsError
        If the settings need the whole movie, or the output may not be written.
    InputError
        If the source is not a table of detections, or its frames decrease.
    """
    if job.settings.pins:
        raise SettingsError("Pins need the whole movie: leave out --stream or the cluster, or the pins.")
    if job.settings.max_distance is None:
        if job.settings.periodic is not None:
            raise SettingsError("In a periodic box chunks need a max_distance, or the movie goes as one.")
        if parts:
            raise SettingsError("What is learned is put together here: leave --parts out.")
        return _learned(source, output, job, how)
    used = _gated(source, output, job)
    hashed = begun(job.origin, str(source))
    frames, counts = parquet.frames_in(source, job.columns)
    used = replace(used, device=device_for(used.device, int(counts.sum()), GPU_FROM_DETECTIONS))
    rows = how.rows or ROWS
    extent = {"rows_of_a_range": rows, "parts": parts}
    chunks = plan(frames, counts, rows) or [Chunk(0, 0, 0, 0)]
    # Only a run that goes on must know before it links that the input is still the same.
    first = job.record(hashed.result() if how.resume else {"name": source.name}, used) | extent
    with (
        _folder(output, first if how.resume else first | DRAFT, how, parts=parts) as folder,
        recorded_beside(
            None if how.resume else folder, lambda: job.record(hashed.result(), used), extent
        ) as recording,
    ):
        chunk_files = _files(source, folder, job, how)
        link = [LinkChunk(chunk_files, each, used) for each in chunks]
        joining = Joining(chunks, folder)
        # On the CPU and without gaps, the rows of a chunk are final when all chunks before it are linked.
        at_once = used.device == "cpu" and not used.max_gap
        at_first = stats_of([], used)

        def write(which: Sequence[int], stats: Mapping[str, Any]) -> list[Task]:
            content = record_bytes(recorded(recording.result(), stats)) if which else b""
            return [WriteChunk(chunk_files, chunks[each], content) for each in which]

        def joined() -> Sequence[Task]:
            if at_once and recording.done():
                return write(joining.numbered(), at_first)
            joining.go_on()
            return ()

        _done(link, folder, how, 2 * len(chunks), joined)
        chains = joining.number_tracks(used)
        stats = stats_of(chains.stats, used, chains.tracks) | {"gap_links": chains.gap_links}
        stats["links"] += chains.gap_links
        stats["worst_gap"] = max(stats["worst_gap"], chains.gap)
        whole = recorded(recording.result(), stats)
        writing = write(range(len(chunks)), stats)
        _done(writing, folder, how, 2 * len(chunks))
        files = [task.output for task in writing]
        if parts:
            _as_folder(files, output, overwrite=how.overwrite)
        elif output.suffix == _GRAPH:
            write_parts(folder, output, whole, overwrite=how.overwrite)
        else:
            join_parts(files, output, whole, overwrite=how.overwrite)
        _keep_account(folder, output)
    return stats | {"ranges": len(chunks)}


def detect_in_chunks(source: str, output: Path, job: DetectJob, how: How = How()) -> dict[str, Any]:
    """Detect spots in a movie, chunk by chunk; the output has the same bytes as that of `outbid detect`.

    Parameters
    ----------
    source : str
        What `open_images` opens, wherever a task is done.
    output : Path
        A table, or .geff or .xml.
    job : DetectJob
    how : How

    Returns
    -------
    dict
        Counts of detections and frames, the radii, and ``ranges``, the number of chunks.

    Raises
    ------
    OutbidError
        As `outbid.detect`.
    """
    formats.check_output(output, overwrite=how.overwrite, inputs=[Path(source)])
    movie = job.open(source)
    for remark in job.remarks(movie):
        _LOG.warning("%s", remark)
    numbers = job.crop.bounds().of(movie).numbers
    model, settings = job.learned(movie)
    if not job.labels:
        voxels = int(np.prod(movie.shape)) * len(numbers)
        settings = replace(settings, device=device_for(settings.device, voxels, GPU_FROM_VOXELS))
    step = max(_VOXELS // int(np.prod(movie.shape)), 1)
    given = replace(job, settings=settings, model=model)
    begin = numbers.start if model is not None or job.labels else numbers.stop
    ends = [(first, min(first + step, numbers.stop)) for first in range(begin, numbers.stop, step)]
    empty = Detections.from_table([], []) if job.labels else detect([], settings, unit=movie.unit)[0]
    record = job.record(job.origin(source), settings)
    with _folder(output, record | {"frames_of_a_range": step}, how, parts=False) as folder:
        where = source if "://" in source else str(Path(source).resolve())
        tasks = [DetectChunk(where, str(folder.resolve()), k, each, given) for k, each in enumerate(ends)]
        _done(tasks, folder, how, len(tasks))
        files = [task.output for task in tasks]
        rows = sum(map(parquet.row_count, files))
        if output.suffix == ".parquet" and files:
            join_parts(files, output, record, overwrite=how.overwrite)
        else:
            found = Detections.joined([formats.read_detections(file) for file in files] or [empty])
            formats.write_detections(output, found, record=record, overwrite=how.overwrite)
        _keep_account(folder, output)
    return {
        "detections": rows, "frames": len(numbers), "axes": movie.axes, "radius": settings.radius,
        "radius_z": settings.radius_z, "unit": movie.unit, "device": settings.device, "ranges": len(tasks),
        "units": str(movie.calibration),
    }  # fmt: skip


def _learned(source: Path, output: Path, job: TrackJob, how: How) -> dict[str, Any]:
    """Link with a model learned from parts of the movie."""
    _gated(source, output, job)
    frames, counts = parquet.frames_in(source, job.columns)
    device = device_for(job.settings.device, int(counts.sum()), GPU_FROM_DETECTIONS_LEARNED)
    used, size = replace(job.settings, device=device), how.rows or learned.ROWS[device]
    chunks = plan(frames, counts, size)
    if not chunks:
        raise SettingsError(f"{source} holds no detections. Is this the right file?")
    extended = learned.around(chunks, counts)
    if how.run is here and device == "gpu" and how.rows is None:  # else the memory is stated
        most = max(high - low for low, high in extended)
        how = replace(how, run=partial(side_by_side, at_once=learned.at_once(most)))
    record = job.record(job.origin(str(source)), used)
    with _folder(output, record | {"rows_of_a_range": size}, how, parts=False) as folder:
        chunk_files = _files(source, folder, job, how)
        chosen = [chunks[k] for k in sorted({0, len(chunks) // 2, len(chunks) - 1})]
        total = len(chosen) + len(chunks)
        learn = [LearnChunk(chunk_files, each, used) for each in chosen]
        _done(learn, folder, how, total)
        model = learned.model_of(learn)
        given = replace(used, fixed={**model.known, **used.fixed})  # what the user fixed goes before
        link = [
            LinkLearned(chunk_files, each, rows, given) for each, rows in zip(chunks, extended, strict=True)
        ]
        _done(link, folder, how, total)
        detections = formats.read_detections(source, columns=job.columns)
        lap("read")
        pairs, measures, facts = learned.together(link, len(detections))
        tracks = Tracks(detections, pairs, **measures)
        where = {} if device == "cpu" else {"device": "gpu and cpu", "swept_on": "gpu"}
        stats = stats_of([], replace(used, device="cpu"), tracks.track_count) | {
            "links": len(pairs), "gap_links": int((np.diff(detections.frame[pairs], axis=1) > 1).sum()),
            "divisions": int((tracks.successors > 1).sum()),
            "merges": int((tracks.predecessors > 1).sum()), **facts, **where,
        }  # fmt: skip
        whole = record | {"model": {"known": dict(model.known), "parts": list(model.movies)}}
        lap("tracks")
        formats.write_tracks(output, tracks, record=whole, overwrite=how.overwrite)
        lap("write")
        _keep_account(folder, output)
    return stats | {"ranges": len(chunks)}


track_in_ranges, detect_in_ranges = track_in_chunks, detect_in_chunks
"""The former names, for one release."""


def _gated(source: Path, output: Path, job: TrackJob) -> Any:
    """The settings, if they allow linking chunk by chunk; else an error."""
    suffixes = {".parquet", ".pq"}
    if source.suffix not in suffixes or output.suffix not in {*suffixes, _GRAPH}:
        raise SettingsError(
            f"Chunks are read as Parquet and written as Parquet or GEFF; got {source.name} and "
            f"{output.name}. Convert the input (outbid convert) and name the output .parquet or .geff."
        )
    if job.crop:
        raise SettingsError("Chunks are of the whole movie: leave --region, --frames and --mask out.")
    return replace(job.settings, max_gap=job.settings.max_gap or 0)


def _files(source: Path, folder: Path, job: TrackJob, how: How) -> ChunkFiles:
    return ChunkFiles(str(source.resolve()), str(folder.resolve()), tuple(job.columns.items()), how.threads)


@contextmanager
def _folder(output: Path, record: Mapping[str, object], how: How, *, parts: bool) -> Iterator[Path]:
    """The temporary folder of the tasks, beside the output; removed when the run is complete."""
    if parts and output.exists():
        refuse = _foreign(output) or (None if how.overwrite else f"{output} exists. Add --overwrite.")
        if refuse:
            raise SettingsError(refuse)
    elif not parts:
        formats.check_output(output, overwrite=how.overwrite)
    folder = output.with_name(output.name + ".parts")
    with ExitStack() as opened:
        begin_folder(folder, record, opened, resume=how.resume)
        yield folder
        remove_folder(folder)


def _done(
    tasks: Sequence[Task],
    folder: Path,
    how: How,
    total: int,
    further: Callable[[], Sequence[Task]] = lambda: (),
) -> None:
    """Run the tasks whose files are missing, and record which worker ran each.

    `further` returns the tasks that have become possible, each once; it is asked at first and after each.
    """
    left = _missing([*tasks, *further()])
    done = sum(1 for _ in folder.glob("account-*.json")) + len(tasks) - len(left)
    # Each account waits for the disk, so that workers would wait for one thread.
    with ThreadPoolExecutor(WRITERS) as pool:
        writing = []
        while left:
            given = len(left)
            for account_of in how.run(left):
                writing.append(pool.submit(_write_account, folder, account_of))
                done += 1
                left += _missing(further())
                if how.progress is not None:
                    how.progress(min(done, total), total)
            left = _missing(left[given:])
        for each in writing:
            each.result()


def _missing(tasks: Sequence[Task]) -> list[Task]:
    """The tasks whose files are not there."""
    return [task for task in tasks if not task.output.exists()]


def _write_account(folder: Path, account_of: Mapping[str, Any]) -> None:
    content = json.dumps(account_of).encode()
    path = folder / f"account-{account_of['file']}.json"
    write_whole(path, lambda file: file.write(content), overwrite=True)


def _keep_account(folder: Path, output: Path) -> None:
    """Write which worker ran which task beside the output; this differs from run to run."""
    accounts = [json.loads(file.read_bytes()) for file in sorted(folder.glob("account-*.json"))]
    content = json.dumps({"written_by": "outbid", "tasks": accounts}, indent=1).encode() + b"\n"
    path = output.with_name(output.name + ".tasks.json")
    write_whole(path, lambda file: file.write(content), overwrite=True)


def _as_folder(files: Sequence[Path], output: Path, *, overwrite: bool) -> None:
    """Move the folder of parts to the output path."""

    def write(folder: Path) -> None:
        folder.mkdir()
        for number, file in enumerate(files):
            file.replace(part_file(folder, number))

    write_whole_folder(output, write, overwrite=overwrite, foreign=_foreign)


def _foreign(path: Path) -> str | None:
    """Why a folder must not be replaced by the output; None if it may be replaced."""
    names = {file.name for file in path.iterdir()} if path.is_dir() else set()
    if names and all(name.startswith("part-") and name.endswith(".parquet") for name in names):
        return None
    return f"{path} is no folder of parts that Outbid wrote. Choose another name, or remove it."
