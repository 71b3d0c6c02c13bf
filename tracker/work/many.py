"""Many movies, each independently, in processes or on any executor; keeps outputs, reports failures."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from .. import formats
from ..errors import InputError, OutbidError, ResourceError, SettingsError, one_line, refuse_unlike
from ..formats.files.outputs import refuse_output
from ..formats.files.records import record_bytes
from ..settings.detection import DetectionSettings
from ..tracking import TrackingSettings
from .jobs import DetectJob, Job, TrackJob, stem_of

_PAGES = (".json", ".html")
"""Suffixes of outputs that are not tables: JSON values, and HTML pages."""
_KILLED = "its process was killed, perhaps for want of memory. Try it alone, or on a larger machine."
_Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Outcome:
    """The outcome of the job for one movie.

    Parameters
    ----------
    source, output : str
    state : {"done", "kept", "failed"}
        Kept: the output existed already, made from the same input with the same settings and version.
    why : str
        The reason of a failure, in one line.
    exit_code : int
        That of the failure; 0 if there is none.
    seconds : float
        That it took.
    summary : mapping
        Counts returned by the job.
    """

    source: str
    output: str
    state: str
    why: str = ""
    exit_code: int = 0
    seconds: float = 0.0
    summary: Mapping[str, object] | None = None


def track_many(
    sources: Sequence[_Path],
    out_dir: _Path,
    settings: TrackingSettings | None = None,
    *,
    suffix: str = ".csv",
    executor: Executor | None = None,
    overwrite: bool = False,
) -> list[Outcome]:
    """Link the detections of many movies, each independently.

    Parameters
    ----------
    sources : sequence of path-like
        Files that `outbid.read_detections` reads.
    out_dir : path-like
        Folder of the outputs, which is made; each has the name of its input.
    settings : TrackingSettings, optional
        Of all movies; default: what each needs is learned from itself.
    suffix : str
        Format of the outputs.
    executor : concurrent.futures.Executor, optional
        Where the movies are worked on, such as a pool of processes, or
        ``dask.distributed.Client.get_executor()``. Default: here, one after the other.
    overwrite : bool
        Whether outputs of other inputs or settings may be replaced.

    Returns
    -------
    list of Outcome
        One a movie, in their order. A movie that fails does not end the others.

    Raises
    ------
    SettingsError
        If two movies would have one output, or the folder cannot be made.

    Examples
    --------
    >>> from outbid import Detections, write_detections
    >>> for name in ("a", "b"):
    ...     write_detections(f"{name}.csv", Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]]))
    >>> [done.state for done in track_many(["a.csv", "b.csv", "c.csv"], "tracks")]
    ['done', 'done', 'failed']
    >>> [done.state for done in track_many(["a.csv", "b.csv"], "tracks")]
    ['kept', 'kept']
    """
    refuse_unlike(TrackingSettings, "TrackingSettings", {"settings": settings})
    job = TrackJob(settings or TrackingSettings())
    return run_many(job, sources, out_dir, suffix=suffix, executor=executor, overwrite=overwrite)


def detect_many(
    sources: Sequence[_Path],
    out_dir: _Path,
    job: DetectionSettings | DetectJob | None = None,
    *,
    suffix: str = ".csv",
    executor: Executor | None = None,
    overwrite: bool = False,
) -> list[Outcome]:
    """Detect spots in many movies, each independently.

    Parameters
    ----------
    sources : sequence of path-like
        What `outbid.formats.images.opening.open_images` opens.
    job : DetectionSettings or DetectJob, optional
        Settings alone, or with channel, scene, region and so on.
    out_dir, suffix, executor, overwrite
        As for `track_many`.

    Returns
    -------
    list of Outcome

    Raises
    ------
    SettingsError
        As `track_many`.
    """
    refuse_unlike((DetectionSettings, DetectJob), "DetectionSettings or a DetectJob", {"job": job})
    whole = job if isinstance(job, DetectJob) else DetectJob(job or DetectionSettings())
    return run_many(whole, sources, out_dir, suffix=suffix, executor=executor, overwrite=overwrite)


def run_many(
    job: Job,
    sources: Sequence[_Path],
    out_dir: _Path,
    *,
    suffix: str = ".csv",
    executor: Executor | None = None,
    jobs: int = 1,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Run a job on each movie, in this process, `jobs` processes or an executor; see `track_many`.

    Other machines must see the same files under the same absolute paths.
    """
    is_list = isinstance(sources, Iterable) and not isinstance(sources, str | bytes)
    listed = list(sources) if is_list else sources
    if not is_list or not all(isinstance(source, str | os.PathLike) for source in listed):
        raise SettingsError(f"The movies are {listed!r}; give a list of names of files.")
    refuse_unlike((str, os.PathLike), "the name of a folder", {"out_dir": out_dir})
    outputs = outputs_of([os.fspath(source) for source in listed], Path(out_dir), suffix)
    try:
        Path(out_dir).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"{out_dir} cannot be made: {error.strerror}. Choose another folder.") from None
    tasks = [_Task(job, source, output, overwrite) for source, output in outputs.items()]
    found: dict[str, Outcome] = {}
    for outcome in _outcomes(tasks, executor, min(jobs, len(tasks))):
        found[outcome.source] = outcome
        if progress is not None:
            progress(len(found), len(tasks))
    return [found[task.source] for task in tasks]


def outputs_of(sources: Sequence[str], out_dir: Path, suffix: str) -> dict[str, Path]:
    """Path of each output: the input's name, with its folder's name in front if several names are equal.

    Raises
    ------
    SettingsError
        If two outputs would still have the same path, or no format has the suffix.

    Examples
    --------
    >>> found = outputs_of(["a/spots.csv", "b/spots.csv", "x.ome.tif"], Path("out"), ".csv")
    >>> [path.name for path in found.values()]
    ['a_spots.csv', 'b_spots.csv', 'x.csv']
    """
    refuse_unlike(str, "a suffix such as .csv", {"suffix": suffix})
    if suffix not in formats.WRITTEN and suffix not in _PAGES:
        raise SettingsError(f"{suffix} is no format. Choose from: {', '.join(formats.WRITTEN)}.")
    names = {source: stem_of(source) for source in sources}
    often = Counter(names.values())
    for source, name in names.items():
        if often[name] > 1:
            names[source] = f"{Path(source).absolute().parent.name}_{name}"
    twice = next((name for name, count in Counter(names.values()).items() if count > 1), None)
    if twice is not None:
        same = [source for source, name in names.items() if name == twice]
        raise SettingsError(f"{same[0]} and {same[1]} would both be {twice}{suffix}. Rename one of them.")
    return {source: out_dir / f"{name}{suffix}" for source, name in names.items()}


@dataclass(frozen=True)
class _Task:
    """A job to run on one movie, in any process."""

    job: Job
    source: str
    output: Path
    overwrite: bool

    def __call__(self) -> Outcome:
        start = time.perf_counter()
        try:
            request = json.loads(record_bytes(self.job.request()))
            origin = self.job.origin(self.source)
            if self._is_done(request, origin):
                return Outcome(self.source, str(self.output), "kept")
            if self.output.exists() and not self.overwrite:
                raise SettingsError(
                    f"{self.output} is there, of another input, other settings or another version. "
                    "To replace it: --overwrite."
                )
            inputs = [Path(self.source)]
            if self.output.suffix in _PAGES:
                refuse_output(self.output, overwrite=self.overwrite, inputs=inputs)
            else:
                formats.check_output(self.output, overwrite=self.overwrite, inputs=inputs)
            summary = self.job.run(self.source, self.output, {"request": request}, overwrite=self.overwrite)
        except OutbidError as error:
            return self._failed(str(error), error.exit_code)
        except MemoryError:
            return self._failed(
                "the memory does not suffice. Take a larger machine.", ResourceError.exit_code
            )
        except OSError as error:
            return self._failed(f"{error.strerror or error}. Make room, or choose another place.", 4)
        except Exception as error:
            return self._failed(f"A bug in Outbid: {type(error).__name__}: {error}.", OutbidError.exit_code)
        seconds = time.perf_counter() - start
        return Outcome(self.source, str(self.output), "done", seconds=seconds, summary=summary)

    def anywhere(self) -> _Task:
        """Copy of the task with absolute paths, for a process in another working directory."""
        source = self.source if "://" in self.source else str(Path(self.source).absolute())
        return replace(self, source=source, output=self.output.absolute())

    def _is_done(self, request: object, origin: Mapping[str, str]) -> bool:
        """Whether the output exists, made from this input with these settings and this version."""
        if not self.output.exists():
            return False
        try:
            record = self.job.kept(self.output)
        except InputError:
            return False
        same = record.get("version") == metadata.version("outbid") and record.get("request") == request
        return same and record.get("input") == dict(origin)

    def _failed(self, why: str, exit_code: int) -> Outcome:
        return Outcome(self.source, str(self.output), "failed", one_line(why), exit_code)


def _outcomes(tasks: list[_Task], executor: Executor | None, jobs: int) -> Iterator[Outcome]:
    """Run the tasks and yield the outcome of each, in any order."""
    if executor is not None:
        yield from _on(executor, tasks)
    elif jobs <= 1:
        yield from (task() for task in tasks)
    else:
        yield from _in_processes(tasks, jobs)


def _on(executor: Executor, tasks: Sequence[_Task]) -> Iterator[Outcome]:
    """Run the tasks on an executor; an exception of the executor is the failure of its task."""
    futures: dict[Future[Outcome], _Task] = {executor.submit(_do, task.anywhere()): task for task in tasks}
    try:
        for future in as_completed(futures):
            error = future.exception()
            task = futures[future]
            if error is None:
                yield replace(future.result(), source=task.source, output=str(task.output))
            elif isinstance(error, Exception):
                yield task._failed(f"{type(error).__name__}: {error}.", ResourceError.exit_code)
            else:
                raise error
    finally:
        for future in futures:
            future.cancel()


def _in_processes(tasks: list[_Task], jobs: int) -> Iterator[Outcome]:
    """Run the tasks in separate processes.

    If a worker process is killed, a new pool of processes runs the unfinished tasks. Tasks that were
    running when a process was killed are then run one by one, to find the task that ends its process.
    """
    left = list(tasks)
    while left:
        done: set[str] = set()
        for outcome in _in_a_pool(left, jobs):
            done.add(outcome.source)
            yield outcome
        left = [task for task in left if task.source not in done]
        for task in left[:jobs]:
            found = list(_in_a_pool([task], 1))
            yield found[0] if found else task._failed(_KILLED, ResourceError.exit_code)
        left = left[jobs:]


def _in_a_pool(tasks: Sequence[_Task], jobs: int) -> Iterator[Outcome]:
    """Run tasks in one pool until all are done or a process is killed."""
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_end_only_at_work
    )
    try:
        futures = [pool.submit(_do, task) for task in tasks]
        for future in as_completed(futures):
            try:
                yield future.result()
            except BrokenProcessPool:
                return
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            if process.pid is not None:
                os.kill(process.pid, signal.SIGINT)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


_at_work = threading.Event()


def _do(task: _Task) -> Outcome:
    """Run a task in another process."""
    _at_work.set()
    try:
        return task()
    finally:
        _at_work.clear()


def _end_only_at_work() -> None:
    """Let Ctrl-C end only the running task of a process, so that its temporary files are removed."""

    def end(*_: object) -> None:
        if _at_work.is_set():
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, end)
