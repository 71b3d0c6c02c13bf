"""Link movies larger than the memory: read, link and write some frames at a time.

`chunks` do the same for gaps, models and clusters. Without these they are slower: for 10^8 rows, with four
chunks linked at the same time and a thread that writes, 20.7 s instead of 16.5 on 16 cores, and 13.5 s
instead of 8.2 with an H100; with one chunk at a time, which reads ahead, 34 and 22 s. They take less memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compute.threads import Ahead, begun
from ..compute.timing import lap
from ..errors import SettingsError
from ..formats import check_output
from ..formats.tables.columns import AS_NAMED
from ..formats.tables.parquet import detections_in_parts, row_count
from ..formats.tables.parts import Parts
from ..gated.batches import RECORDED, Batches, account
from ..gated.linking import Links
from ..gated.movie import gated_links
from ..particles.detections import Detections
from ..particles.remarks import Doubled, doubled, on_one_frame
from ..particles.tracks import Tracks
from ..settings.device import GPU_FROM_DETECTIONS, device_for
from ..tracking import TrackingRun, TrackingSettings, run_of

_ROWS = 4_000_000
"""Detections read at a time: enough to fill a GPU, some four gigabytes of memory in all."""


_LEAST_ROWS = 100_000
_ROW_BYTES = 1000
"""Bytes that a row needs while pieces are read, linked and written at the same time."""
_OWN_BYTES = 350_000_000
"""Bytes of the Python process with its modules."""


def rows_for(gigabytes: float | None) -> int:
    """Number of detections to read at a time so that a run needs about this much memory.

    Examples
    --------
    >>> rows_for(None), rows_for(1.35), rows_for(0.1)
    (4000000, 1000000, 100000)
    """
    if gigabytes is None:
        return _ROWS
    return max(round((gigabytes * 1e9 - _OWN_BYTES) / _ROW_BYTES), _LEAST_ROWS)


def _refuse_what_is_no_stream(source: Path, output: Path, settings: TrackingSettings) -> None:
    """Raise an error if the files are no Parquet, or the settings ask for what needs the whole movie."""
    if not {source.suffix, output.suffix} <= {".parquet", ".pq"}:
        raise SettingsError(
            f"--stream reads and writes Parquet; got {source.name} and {output.name}. Convert the input "
            "(outbid convert) and name the output .parquet."
        )
    if settings.pins:
        raise SettingsError("Pins need the whole movie in memory: leave out --stream, or the pins.")
    if settings.max_distance is None or settings.max_gap:
        raise SettingsError(
            "Frames that are streamed here are linked one to the next: set max_distance, and leave out "
            "max_gap. With gaps, or a model: outbid.work.chunks.movie.track_in_chunks."
        )


def track_stream(
    source: Path,
    output: Path,
    settings: TrackingSettings,
    *,
    record: Mapping[str, object] | Callable[[TrackingSettings], Mapping[str, object]],
    columns: Mapping[str, str] = AS_NAMED,
    overwrite: bool = False,
    resume: bool = False,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    rows: int = _ROWS,
) -> dict[str, int | float | str]:
    """Link the detections of a Parquet file to tracks in another, as `track` would, in little memory.

    Finished parts of the movie are kept beside the output, in a folder with ``.parts`` after its name,
    until the run is complete.

    Parameters
    ----------
    source : Path
        A Parquet table of detections whose frames do not decrease.
    output : Path
        A Parquet file.
    settings : TrackingSettings
        With a `max_distance`, and without gaps, which need frames far apart at the same time.
    record : mapping, or callable that returns it for the settings that are used
        Goes into the output. What is kept of an earlier run is used only if its record is the same. It is
        asked for while the first detections are read, unless the run resumes another.
    columns : mapping of str to str
        As for `outbid.read_detections`.
    overwrite : bool
        Whether the output may be there already.
    resume : bool
        Go on where an earlier run was interrupted; the result is the same to the byte.
    workers, progress
        As in `track`.
    rows : int
        Detections read at a time, and at least one whole frame; they do not change the tracks. Margins may be
        other lower bounds, as good as those of the whole movie.

    Returns
    -------
    dict
        Counts, worst_gap, solver, device and fallbacks, as `TrackingRun.stats`; and, where there is one, a
        remark on frames that are missing or rows that are there twice.

    Raises
    ------
    SettingsError
        If the settings ask for what needs the whole movie, the output may not be written, or there is no
        earlier run with this record to resume.
    InputError
        If the source is not a table of detections, or its frames decrease.
    """
    _refuse_what_is_no_stream(source, output, settings)
    check_output(output, overwrite=overwrite, inputs=[source])
    total, done = row_count(source), 0
    # Numbers of the tracks in the frame before, and how many there are.
    ended, count = np.empty(0, np.int64), 0
    twice: list[Future[Doubled]] = []
    frames = set[int]()
    # One thread decodes, one reads, one joins frames to the piece before, one links, one makes tracks, one
    # looks for rows that are there twice, some write parts and the output; this one numbers the tracks.
    with ExitStack() as opened:
        joined = opened.enter_context(closing(Ahead(_overlapping(source, columns, rows), "join")))
        used = replace(settings, device=device_for(settings.device, total, GPU_FROM_DETECTIONS), max_gap=0)
        lap("device")

        def begin() -> Parts:
            given = record(used) if callable(record) else record
            return Parts(output, given, overwrite=overwrite, resume=resume)

        resumed = begin() if resume else None
        links_of = _linked(joined, used, workers or os.cpu_count() or 1, resumed.done if resumed else 0)
        linked = opened.enter_context(closing(Ahead(links_of, "linking")))
        pieces = opened.enter_context(closing(Ahead(_in_tracks(linked, used), "tracks")))
        parts = opened.enter_context(resumed or begin())
        for number, (seen, before, run) in enumerate(pieces):
            lap("linking")
            own = seen.take(slice(before, None))
            if twice:
                twice[-1].result()  # it would fall behind, and keep all pieces in memory
                lap("waiting")
            twice.append(begun(_doubled, own))
            if run is None:
                track_id = parts.repeat(number, own)
            else:
                track_id = _numbered(run.tracks, ended, count)
                lap("tracks")
                parts.add(number, run.tracks, track_id, run.stats)
            lap("write")
            ended = track_id[seen.rows_of(int(seen.frame[-1])).start - before :]
            count = max(count, int(track_id.max()) + 1)
            done += len(track_id)
            frames |= {int(seen.frame[0]), int(seen.frame[-1])}
            if progress is not None:
                progress(done, total)
        stats = stats_of(parts.facts, used, count)
        parts.join({name: stats[name] for name in stats if name in RECORDED})
        lap("write")
    alone = [on_one_frame(done, min(frames, default=0))] if len(frames) < 2 else []
    messages = " ".join([*alone, *sum((each.result() for each in twice), Doubled()).messages()])
    return stats | ({"remark": messages} if messages else {})


def _linked(
    pieces: Iterator[tuple[Detections, int]], used: TrackingSettings, workers: int, done: int
) -> Generator[tuple[Detections, int, Links | None], None, None]:
    """Yield the pieces of `_overlapping` with their links; those of the first `done` are known."""
    for number, (seen, before) in enumerate(pieces):
        lap("waiting")
        yield seen, before, gated_links(seen, used, workers) if number >= done else None


def _in_tracks(
    pieces: Iterator[tuple[Detections, int, Links | None]], used: TrackingSettings
) -> Generator[tuple[Detections, int, TrackingRun | None], None, None]:
    """Yield the pieces of `_linked` with their tracks, numbered by themselves."""
    for seen, before, links in pieces:
        lap("waiting")
        yield seen, before, run_of(seen, links, used) if links is not None else None


def _overlapping(
    source: Path, columns: Mapping[str, str], rows: int
) -> Generator[tuple[Detections, int], None, None]:
    """Read the detections piece by piece; each begins with the last frame before, of so many detections."""
    last = Detections.from_table([], [])
    with closing(Ahead(detections_in_parts(source, rows, columns), "read")) as pieces:
        for piece in pieces:
            lap("waiting")
            yield Detections.joined([last, piece] if len(last) else [piece]), len(last)
            last = piece.take(piece.rows_of(int(piece.frame[-1])))


def _doubled(own: Detections) -> Doubled:
    """Rows of a piece that are there twice, as a stage of its own."""
    found = doubled(own)
    lap("doubled")
    return found


def stats_of(facts: list[dict[str, Any]], used: TrackingSettings, tracks: int = 0) -> dict[str, Any]:
    """Statistics over all pieces, as `TrackingRun.stats`."""
    stats = {
        "links": sum(fact["links"] for fact in facts),
        "gap_links": 0, "divisions": 0, "merges": 0, "tracks": tracks,
        "worst_gap": max((fact["worst_gap"] for fact in facts), default=0.0),
        "solver": used.solver,
    }  # fmt: skip
    on_gpu = facts if used.device == "gpu" else []
    batches = sum((Batches.from_dict(fact) for fact in on_gpu), Batches())
    return stats | account(batches, used.device, exact_margins=used.exact_margins)


def _numbered(tracks: Tracks, ended: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Track numbers in the whole movie of a piece without its first frame, as `ended` has those of that.

    The first frame of a piece is the last frame of the piece before; it has no links within itself, so
    its detections begin the first tracks.
    """
    number = np.concatenate([ended, np.arange(count, count + tracks.track_count - len(ended))])
    return number[tracks.track_id[len(ended) :]]
