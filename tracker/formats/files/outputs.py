"""Outputs: complete or absent, even if the process is killed or the disk is full; never another's file.

What is written has a temporary name beside the output, `NAME.xxxxxxxx.tmp`, until it is complete; then it is
renamed. The temporary file or folder is locked while it is in use: an unlocked one was left by a run that was
killed, and the next run that writes there removes it.
"""

from __future__ import annotations

import errno
import logging
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import BinaryIO

from ...compute.interrupt import disturbed, end_if_asked, undisturbed
from ...errors import SettingsError
from .records import is_record

_LOG = logging.getLogger("outbid")
_ENDING = re.compile(r"(\.parts)?\.[0-9a-f]{8}\.tmp")
"""Endings of temporary names, for an output or its folder of parts."""
_LOCKS = os.name == "posix"
"""Whether files are locked; on systems where open files cannot be moved, nothing is locked or removed."""
_TRIES, _PAUSE = 100, 0.02
"""Attempts, and seconds between them, to remove a folder in which files still appear and vanish."""
BEFORE, AFTER = "old", "new"
"""Names, within the temporary folder, of the folder that is replaced and of its replacement."""


def refuse_output(
    path: Path,
    *,
    overwrite: bool,
    inputs: Iterable[Path] = (),
    record: Path | None = None,
    foreign: Callable[[Path], str | None] | None = None,
) -> None:
    """Refuse an output path that must not be written; remove leftovers of killed runs beside it first.

    Parameters
    ----------
    inputs : iterable of Path
        Files from which the output is made; the output must not replace any of them.
    record : Path, optional
        The run record that will be written or removed beside the output, of which it is a part.
    foreign : callable, optional
        For an output that is a folder: returns why an existing folder is not an earlier output, or None if it
        is one.

    Raises SettingsError if the parent folder is missing, a name is too long, or something exists that must
    not be replaced; and OSError if nothing can be written there.
    """
    if not path.parent.is_dir():
        raise SettingsError(f"There is no folder {path.parent} for the output. Make it first.")
    files = [path] if record is None else [path, record]
    for file in files:
        target = _end_of_links(file)
        _refuse_an_input(file, inputs)
        _try_to_write(target, file)
        remove_leftovers(target)
    if path.exists() and not (path.is_file() if foreign is None else path.is_dir()):
        kind = "file" if foreign is None else "folder"
        raise SettingsError(f"{path} is there and is no {kind}. Choose another name for the output.")
    if record is not None and record.exists() and not is_record(record):
        raise SettingsError(
            f"{record} is where the run record goes, and was not written by Outbid: it is not replaced. "
            "Move it, or choose another name for the output."
        )
    for file in files:
        if file.exists() and not overwrite:
            raise SettingsError(
                f"{file} exists. Choose another name, or allow it to be replaced: --overwrite (Python: "
                "overwrite=True)."
            )
    if foreign is not None and path.exists() and (reason := foreign(path)) is not None:
        raise SettingsError(
            f"{path} is a folder of another kind, which is not replaced: {reason}. Choose another name."
        )


def refuse_one_for_two(outputs: Mapping[str, Path | None]) -> None:
    """Refuse two options that name the same file, also through symbolic links: a SettingsError."""
    paths = [(option, path) for option, path in outputs.items() if path is not None]
    for (option, path), (other, same) in combinations(paths, 2):
        if path.resolve() == same.resolve() or (path.exists() and same.exists() and path.samefile(same)):
            raise SettingsError(f"{other} {same} is the file of {option}. Give two files.")


def write_whole(
    path: Path,
    write: Callable[[BinaryIO], object],
    *,
    overwrite: bool,
    beside: tuple[Path, bytes | None] | None = None,
) -> None:
    """Write a file and, optionally, its run record, so that other programs never see an incomplete file.

    Parameters
    ----------
    write : callable
        Writes the content to the open file that it is given. A file that is replaced keeps its permissions.
    overwrite : bool
        Whether an existing file may be replaced.
    beside : (Path, bytes or None), optional
        Path and content of the record; with None, the record of an earlier output is removed.

    Raises
    ------
    SettingsError
        As `refuse_output`.
    OSError
        If the disk is full or cannot be written; nothing has changed then.

    Notes
    -----
    Both files are first written completely under temporary names and then renamed. A crash may occur between
    the two renames, so their order matters. For a new output the record is renamed first: an output that
    exists has its record. For an old output the old record is removed first: an output never stands beside
    the record of another run. While `write` runs, a signal raises at once; during the renames it is held
    back.
    """
    second, content = beside or (None, None)
    refuse = partial(refuse_output, path, overwrite=overwrite, record=second)
    target, second = path.resolve(), second and second.resolve()  # a symbolic link stays one
    with undisturbed(), ExitStack() as stack:
        refuse()
        moves = [(stack.enter_context(_written(target, write)), target)]
        if second is not None and content is not None:
            note = stack.enter_context(_written(second, lambda file: file.write(content)))
            moves.append((note, second))
        with disturbed():
            end_if_asked()
            stack.enter_context(_alone_in(target.parent))
        refuse()  # another run may have written it meanwhile
        if second is not None and (target.exists() or content is None):
            second.unlink(missing_ok=True)
            _sync(second.parent)
        elif second is not None:
            moves.reverse()
        for temporary, final in moves:
            temporary.replace(final)
            _sync(final.parent)


def write_whole_folder(
    path: Path, write: Callable[[Path], object], *, overwrite: bool, foreign: Callable[[Path], str | None]
) -> None:
    """Write a folder atomically, as `write_whole` writes a file.

    Parameters
    ----------
    write : callable
        Creates the folder whose path it is given, and fills it.
    overwrite, foreign
        As for `refuse_output`.

    Notes
    -----
    It raises what `write_whole` raises. An existing folder is first moved into the temporary one. If the
    process is killed between the two moves, nothing is left at `path`, and the next run that writes there
    restores the old folder. While `write` runs, a signal raises at once; during the moves it is held back.
    """
    refuse = partial(refuse_output, path, overwrite=overwrite, foreign=foreign)
    target = path.resolve()
    with undisturbed(), ExitStack() as stack:
        refuse()
        folder = stack.enter_context(staged(target, Path.mkdir))
        written = folder / AFTER
        with disturbed():
            write(written)
            if target.exists():
                shutil.copymode(target, written)
            _sync(written, *written.rglob("*"))
            end_if_asked()
        refuse()
        if target.exists():
            target.replace(folder / BEFORE)
        written.replace(target)
        _sync(target.parent)


def move_whole(whole: Path, path: Path, *, overwrite: bool) -> None:
    """Rename a file that is completely on the disk to its final name; see `write_whole`."""
    refuse_output(path, overwrite=overwrite)
    target = path.resolve()
    if target.exists():
        shutil.copymode(target, whole)
    end_if_asked()
    whole.replace(target)
    _sync(target.parent)


@contextmanager
def staged(final: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """Context with a temporary file or folder made by `make`; it is removed at the end unless it was moved.

    A temporary folder may contain the old output as `BEFORE`; it is restored unless `AFTER` has replaced it.
    """
    while True:
        temporary = final.with_name(f"{final.name}.{secrets.token_hex(4)}.tmp")
        make(temporary)
        try:
            handle = _lock(temporary) if _LOCKS else None
            break
        except (BlockingIOError, FileNotFoundError):
            continue  # another run removed it as a leftover before it was locked
        except BaseException:
            _discard(temporary, final)
            raise
    with _closed_at_the_end(handle):
        try:
            yield temporary
        finally:
            _discard(temporary, final)


@contextmanager
def locked_here(file: Path) -> Iterator[None]:
    """Lock a file that names this process, and remove it at the end; an unlocked file is of a killed run.

    If another process holds the lock, a SettingsError names that process.
    """
    file.touch()
    before = file.read_text("utf-8", "replace").strip()
    try:
        handle = _lock(file)
    except (BlockingIOError, FileNotFoundError):
        raise SettingsError(
            f"{file.parent} is in use by {before or 'another process'}. Wait until that ends, or choose "
            "another name for the output."
        ) from None
    if handle is None:
        _LOG.warning("%s cannot be locked here: start no second run that writes there.", file)
    with _closed_at_the_end(handle):
        try:
            if before:
                _LOG.warning("%s was in use by %s, which was killed: its lock is taken.", file.parent, before)
            file.write_text(f"process {os.getpid()} on {platform.node()}", "utf-8")
            yield
        finally:
            file.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder of parts; it loses its name first, so that a kill leaves it whole or as a leftover."""
    gone = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.tmp")
    try:
        folder.replace(gone)
    except OSError:  # a system where open files cannot be moved
        gone = folder
    shutil.rmtree(gone, ignore_errors=True)  # another run may remove what it takes for a leftover


def remove_leftovers(final: Path) -> None:
    """Remove and report leftovers of killed runs beside `final`; restore an output moved away by one."""
    if not _LOCKS:
        return
    names = sorted(name for name in os.listdir(final.parent) if name.startswith(final.name))  # noqa: PTH208 - fast
    for found in filter(None, (_ENDING.fullmatch(name, len(final.name)) for name in names)):
        left, whole = final.with_name(found.string), final.with_name(final.name + (found[1] or ""))
        with suppress(OSError):  # in use by a running process, or impossible to remove
            if (handle := _lock(left)) is not None:
                with _closed_at_the_end(handle):
                    put_back = _discard(left, whole)
                done = f"what it was replacing is at {whole} again" if put_back else "removed"
                _LOG.warning("%s was left by a run that was killed: %s.", left, done)


def _end_of_links(path: Path) -> Path:
    """The path of an output, with symbolic links resolved."""
    try:
        target = path.resolve()
    except (OSError, RuntimeError):
        raise SettingsError(f"{path} is a link that leads to itself. Choose another name.") from None
    if not target.parent.is_dir():
        raise SettingsError(f"{path} leads to a folder that is not there, {target.parent}. Make it first.")
    return target


def _try_to_write(target: Path, named: Path) -> None:
    """Make and remove a file beside an output: a disk may be read-only, full, or know shorter names."""
    try:
        with undisturbed(), staged(target, partial(Path.touch, exist_ok=False)):
            pass
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise SettingsError(f"The name {named.name} is too long for its folder. Shorten it.") from None
        raise OSError(error.errno, error.strerror, str(named)) from None


def _refuse_an_input(path: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output that is an input, lies inside one, or contains one."""
    target = path.resolve()
    for source in inputs if path.exists() else ():
        origin = source.resolve()
        if source.exists() and (
            path.samefile(source) or target.is_relative_to(origin) or origin.is_relative_to(target)
        ):
            raise SettingsError(
                f"{path} belongs to the input {source}, which is never replaced. "
                "Choose another name for the output."
            )


@contextmanager
def _written(final: Path, write: Callable[[BinaryIO], object]) -> Iterator[Path]:
    """A temporary file beside `final`, flushed to the disk; removed afterwards unless it was renamed."""
    with staged(final, partial(Path.touch, exist_ok=False)) as temporary:
        with temporary.open("r+b") as file:
            if final.exists():
                shutil.copymode(final, temporary)
            with disturbed():
                write(file)
                file.flush()
                os.fsync(file.fileno())
        yield temporary


def _lock(path: Path) -> int | None:
    """Lock a file or folder until its descriptor is closed or the process ends; None if there are no locks.

    It raises BlockingIOError or FileNotFoundError if another process holds the lock, or has removed the file.
    """
    from filelock import lock_descriptor  # imported only to write: the import takes a while

    writes = path.is_file() and os.access(path, os.W_OK)  # NFS cannot lock files that are opened for reading
    handle = None
    try:
        handle = os.open(path, os.O_RDWR if writes else os.O_RDONLY)
        if lock_descriptor(handle, blocking=False) and os.fstat(handle).st_nlink:
            return handle
        raise BlockingIOError(f"{path} is in use")
    except BaseException as error:
        if handle is not None:
            os.close(handle)
        if isinstance(error, OSError) and not isinstance(error, BlockingIOError | FileNotFoundError):
            return None
        raise


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other run renames files in a folder, so that the renames of two runs do not mix."""
    from filelock import lock_descriptor

    handle = os.open(folder, os.O_RDONLY) if _LOCKS else None
    with _closed_at_the_end(handle):
        with suppress(OSError):  # the file system has no locks
            _ = handle is None or lock_descriptor(handle, blocking=True)
        yield


@contextmanager
def _closed_at_the_end(handle: int | None) -> Iterator[None]:
    """Release a lock, if there is one, by closing its descriptor."""
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _discard(temporary: Path, final: Path) -> bool:
    """Remove a leftover; returns whether an old output was restored first, so that none is lost."""
    put_back = (temporary / BEFORE).is_dir() and (temporary / AFTER).is_dir() and not final.exists()
    if put_back:
        (temporary / BEFORE).replace(final)
    if not temporary.is_dir():
        temporary.unlink(missing_ok=True)
        return put_back
    for left in reversed(range(_TRIES)):  # threads of an interrupted library may write for a moment
        try:
            shutil.rmtree(temporary)
            break
        except OSError as error:
            if not temporary.exists():
                break
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT) or not left:
                raise
            time.sleep(_PAUSE)
    return put_back


def _sync(*paths: Path) -> None:
    """Flush files, or the entries of folders, to the disk, so that they survive a power cut."""
    for path in paths if os.name == "posix" else ():  # elsewhere a folder cannot be opened
        with _closed_at_the_end(handle := os.open(path, os.O_RDONLY)):
            os.fsync(handle)
