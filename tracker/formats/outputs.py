"""Checks of all outputs before anything is written: which path may be written or replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from pathlib import Path

from ..errors import SettingsError
from .records import is_record
from .staged import remove_leftovers


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
    path : Path
    overwrite : bool
        Whether an existing output may be replaced.
    inputs : iterable of Path
        Files from which the output is made; the output must not replace any of them.
    record : Path, optional
        The run record that will be written or removed beside the output, of which it is a part.
    foreign : callable, optional
        For an output that is a folder: returns why an existing folder is not an earlier output, or None if it
        is one.

    Raises
    ------
    SettingsError
        If the parent folder is missing, or something exists that must not be replaced.
    """
    if not path.parent.is_dir():
        raise SettingsError(f"There is no folder {path.parent} for the output. Make it first.")
    files = [path] if record is None else [path, record]
    for file in files:
        remove_leftovers(_end_of_links(file))
        _refuse_an_input(file, inputs)
    if path.exists() and not (path.is_file() if foreign is None else path.is_dir()):
        kind = "file" if foreign is None else "folder"
        raise SettingsError(f"{path} is there and is no {kind}. Choose another name for the output.")
    if record is not None and record.exists() and not is_record(record):
        raise SettingsError(
            f"{record} is where the run record goes, and is none of Outbid's: it is not replaced. "
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
    """Refuse two options that name the same file, also through symbolic links.

    Raises
    ------
    SettingsError
        If they do.
    """
    paths = [(option, path) for option, path in outputs.items() if path is not None]
    for (option, path), (other, same) in combinations(paths, 2):
        if path.resolve() == same.resolve() or (path.exists() and same.exists() and path.samefile(same)):
            raise SettingsError(f"{other} {same} is the file of {option}. Give two files.")


def _end_of_links(path: Path) -> Path:
    """The path of an output, with symbolic links resolved."""
    try:
        target = path.resolve()
    except (OSError, RuntimeError):
        raise SettingsError(f"{path} is a link that leads to itself. Choose another name.") from None
    if not target.parent.is_dir():
        raise SettingsError(f"{path} leads to a folder that is not there, {target.parent}. Make it first.")
    return target


def _refuse_an_input(path: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output that is an input, lies inside one, or contains one."""
    if not path.exists():
        return
    target = path.resolve()
    for source in inputs:
        if not source.exists():
            continue
        origin = source.resolve()
        if path.samefile(source) or target.is_relative_to(origin) or origin.is_relative_to(target):
            raise SettingsError(
                f"{path} belongs to the input {source}, which is never replaced. "
                "Choose another name for the output."
            )
