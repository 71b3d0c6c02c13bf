"""Outbid tracks particles in 3D microscopy by exact assignment, and certifies every answer.

The folder ``tracker/`` is the package `outbid` itself; ``simulate/`` is imported as `outbid.simulate`,
``viewers/`` as `outbid.viewers` and ``data/`` as `outbid.data`. This is the map. Imports run downwards
only. The map of a folder is the docstring of its ``__init__``.

11  `cli`         the commands, one a file; one more joins through the entry points ``outbid.commands``
10  `watching`    a movie while it is recorded: detect, link, act, and link again at the end
9   `work`        from file to file: one movie, many movies, a movie in chunks, a cluster
8   `edit`        what a person changes: crop, filter, fill gaps, relabel, proofread
7   `tracking`    `track`: prepare, learned or gated, decide, sum up; what commands, forms and Python call
6   `learned`     learned linking: the model from the movie, and the posterior over links
    `detection`   image stacks to detections
    `measuring`   tracks to tables of motion: diffusion, persistence, cycle times, with errors
    `scoring`     scores of tracks against the truth, one family of scores a file
5   `gated`       linking with a gate: frame to frame, then track ends to later track starts
    `formats`     files in and out, one format a file: tables, images, graphs
4   `settings`    all that determines a result, each setting declared once
3   `pins`        what a person states of links, which holds exactly
    `geometry`    all pairs nearer than a radius, and the nearest few, by a cell list
2   `particles`   `Detections` and `Tracks`: what was seen, and what follows what
    `assignment`  exact assignment with optional rows and columns, and its proof; knows no frame
1   `compute`     arrays, kernels, GPU, threads, timing; the only folder that knows CuPy
    `errors`      what can go wrong, by who can fix it

Kernels stand beside the module that calls them: in ``…_cpu.py`` for Numba, in ``….cu`` for CUDA with
``…_gpu.py`` to launch them. Only `outbid.viewers.forms` and `outbid.viewers.window` import napari and Qt.
To add a solver, a format or an experiment, add one file.

The public names below are imported at their first use (PEP 562), so that importing the package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._moved import serve_former_names

if TYPE_CHECKING:
    from .assignment import Assignment as Assignment
    from .assignment import AssignmentProblem as AssignmentProblem
    from .assignment import DenseCosts as DenseCosts
    from .assignment import PointCosts as PointCosts
    from .assignment import SparseCosts as SparseCosts
    from .assignment import Status as Status
    from .assignment import assign as assign
    from .compute.warming import warm_up as warm_up
    from .detection import detect as detect
    from .edit.filter import filter as filter  # noqa: A004 - as the command
    from .errors import InputError as InputError
    from .errors import OutbidError as OutbidError
    from .errors import ResourceError as ResourceError
    from .errors import SettingsError as SettingsError
    from .errors import SolverError as SolverError
    from .formats import read_detections as read_detections
    from .formats import read_record as read_record
    from .formats import read_tracks as read_tracks
    from .formats import write_detections as write_detections
    from .formats import write_tracks as write_tracks
    from .formats.images.frames import Images as Images
    from .formats.images.opening import open_images as open_images
    from .gated.matching import Match as Match
    from .gated.matching import match as match
    from .measuring import Measures as Measures
    from .measuring import measure as measure
    from .particles.calibration import Calibration as Calibration
    from .particles.detections import Detections as Detections
    from .particles.tracks import Tracks as Tracks
    from .scoring import Scores as Scores
    from .scoring import score as score
    from .settings.detection import DetectionSettings as DetectionSettings
    from .settings.tracking import TrackingSettings as TrackingSettings
    from .simulate.advise import Advice as Advice
    from .simulate.advise import advise as advise
    from .tracking import TrackingRun as TrackingRun
    from .tracking import track as track
    from .viewers.report import report as report
    from .work.convert_job import convert as convert
    from .work.many import detect_many as detect_many
    from .work.many import track_many as track_many

    __version__: str

_MODULES = {
    "assignment": (
        "Assignment",
        "AssignmentProblem",
        "DenseCosts",
        "PointCosts",
        "SparseCosts",
        "Status",
        "assign",
    ),
    "compute.warming": ("warm_up",),
    "detection": ("detect",),
    "errors": ("InputError", "OutbidError", "ResourceError", "SettingsError", "SolverError"),
    "formats": ("read_detections", "read_record", "read_tracks", "write_detections", "write_tracks"),
    "formats.images.frames": ("Images",),
    "formats.images.opening": ("open_images",),
    "gated.matching": ("Match", "match"),
    "measuring": ("Measures", "measure"),
    "particles.calibration": ("Calibration",),
    "particles.detections": ("Detections",),
    "particles.tracks": ("Tracks",),
    "scoring": ("Scores", "score"),
    "settings.detection": ("DetectionSettings",),
    "settings.tracking": ("TrackingSettings",),
    "tracking": ("TrackingRun", "track"),
    "work.many": ("detect_many", "track_many"),
}
_COMMANDS = {
    "edit.filter": ("filter",),
    "simulate.advise": ("Advice", "advise"),
    "viewers.report": ("report",),
    "work.convert_job": ("convert",),
}
"""Named as their commands; ``*`` leaves them out: `filter` would hide Python's, others need a compiler."""
_MODULE_OF = {name: of for of, names in (_MODULES | _COMMANDS).items() for name in names}
_PACKAGES = ("data", "simulate", "viewers")
"""Subpackages in folders of their own, which ``import outbid`` makes available as attributes."""

__all__ = sorted(name for names in _MODULES.values() for name in names)  # noqa: PLE0605
serve_former_names()


def __getattr__(name: str) -> object:
    """Import a public name, the version or a subpackage at its first use."""
    if name in _MODULE_OF:
        found: object = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    elif name in _PACKAGES:
        found = import_module(f".{name}", __name__)
    elif name == "__version__":
        from importlib.metadata import version

        found = version("outbid")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_PACKAGES, "__version__"})
