"""Advice in error messages about files of an unknown format."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from shlex import quote

from ..declared import FORMATS

_IMAGE = "It is an image. Find its spots first: outbid detect {name} -o spots.csv"
_POSITIONS = {pattern for each in FORMATS if not each.has_images for pattern in each.of_files}
_IMAGES = tuple(
    pattern for each in FORMATS if each.has_images for pattern in each.of_files if pattern not in _POSITIONS
)
_ADVICE: Sequence[tuple[tuple[str, ...], str]] = [
    (_IMAGES, _IMAGE),
    (("*.dv", "*.oir"), "Export it as OME-TIFF, for outbid detect."),
    (("*.zip", "*.tar", "*.gz", "*.tgz", "*.bz2", "*.xz", "*.7z"), "It is an archive: unpack it first."),
    (("*.xls", "*.xlsx", "*.ods"), "It is a spreadsheet: save its table as .xlsx or CSV."),
    (("*.h5", "*.hdf5"), "If it holds images: outbid detect {name} -o spots.csv. Export tracks as CSV."),
    (("*.mat", "*.npz", "*.pkl", "*.pickle", "*.json"), "Save its table of points as CSV."),
    (
        ("*_tmtoctc.txt", "*_track.txt"),
        "A table of the Cell Tracking Challenge has no positions: give the folder of its label images, "
        "mask000.tif and so on, with the table in it as res_track.txt.",
    ),
    (("*_targets",), "They are places on one camera: give the rt_is files, which are in space."),
]  # fmt: skip
"""Patterns of lower-case file names, and the advice for each."""


def advice(path: Path) -> str:
    """Advice for a file or folder that no format recognises; empty if there is none.

    Examples
    --------
    >>> advice(Path("tracks.XLS"))
    'It is a spreadsheet: save its table as .xlsx or CSV.'
    >>> advice(Path("notes.md"))
    ''
    """
    if path.is_dir() and not path.name.lower().endswith(".zarr"):
        files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
        if any(fnmatch(file.name.lower(), kind) for file in files for kind in _IMAGES):
            return f"It holds images. Find their spots first: outbid detect {quote(str(path))} -o spots.csv"
        tables = [file for file in files if fnmatch(file.name.lower(), "*.[ctp][sa][vr]*")]
        return f"Give a file of it, such as {(tables or files)[0]}." if files else "It is empty. Give a file."
    name = path.name.lower()
    remedy = next((remedy for patterns, remedy in _ADVICE if any(fnmatch(name, p) for p in patterns)), "")
    return remedy.replace("{name}", quote(str(path)))
