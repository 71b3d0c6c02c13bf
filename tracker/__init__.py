"""Outbid follows particles in 3D microscopy by exact assignment, and proves its answers.

The folder ``tracker/`` is imported as `outbid.tracker`, ``simulate/`` as `outbid.simulate`, ``viewers/``
as `outbid.viewers` and ``data/`` as `outbid.data`. This is the map of the house; imports run downwards
only, and `outbid.viewers` stands with the commands. A folder's map is the docstring of its ``__init__``.

6   `cli`, `terminal`    the commands; one more joins through the entry points ``outbid.commands``
5   `track`              `TrackingSettings` and `track`: what commands, plugins and Python call
    `stream`             the same for a file larger than the memory, some frames at a time
    `live`               frame by frame, as they are recorded
    `advise`             says before any linking what a gate would mean, and what to record otherwise
4½  `calibrate`          learns motion, rates and gate from the detections themselves, and links by them
    `margins`            by how much it would all be worse without a link, exactly
    `divisions`          track starts joined to mothers; merges
    `refine`             a whole movie by the past and the future of every particle, by a model
4   `link`, `gaps`       a whole movie: frame to frame, then track ends to later starts
    `batches`            frame pairs that a GPU links at once, planned to fit its memory
    `score`              tracks against the truth, one family of scores a file
    `detect`             image stacks to detections: spots, or centroids of labels
    `formats`            files in and out, one format a file
3   `match`              two point clouds: gate, price, assign; which point of one is which of the other
    `tracks`             `Tracks`: which detection follows which
2   `assign`             exact assignment with optional rows and columns, and its proof; knows no frame
    `gating`             all pairs nearer than a radius, by a cell list
    `neighbours`         the nearest few points of each point, by a cell list
    `motion`             how particles move: predict, update, and how likely two ends are one track
    `detections`         `Detections`: where particles were seen, frame by frame
1   `_arrays`            where arrays live and what works on them; the only module that knows CuPy
    `_lanes`             threads with a stream of their own on a GPU, so that copies and work overlap
    `errors`, `device`   what can go wrong, by who can mend it; which device works

Kernels stand beside the module that calls them: in ``…_cpu.py`` for Numba, in ``….cu`` for CUDA with
``…_gpu.py`` to launch them. napari and Qt are known to
`outbid.viewers.forms` and `outbid.viewers.window` alone. One more thing is one more file.

The public names below are looked up at their use, so that importing the package is quick. Where a
module has the name of a function (`match`, `track`, …), ``from outbid.tracker import match`` gives the
function and ``from outbid.tracker.match import …`` reaches into the module.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .assign import Assignment as Assignment
    from .assign import AssignmentProblem as AssignmentProblem
    from .assign import DenseCosts as DenseCosts
    from .assign import PointCosts as PointCosts
    from .assign import SparseCosts as SparseCosts
    from .assign import Status as Status
    from .assign import assign as assign
    from .detect import detect as detect
    from .detect.spots import DetectionSettings as DetectionSettings
    from .detections import Detections as Detections
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
    from .match import Match as Match
    from .match import match as match
    from .score import Scores as Scores
    from .score import score as score
    from .track import TrackingRun as TrackingRun
    from .track import TrackingSettings as TrackingSettings
    from .track import track as track
    from .tracks import Tracks as Tracks

_PUBLIC = {
    "assign": [
        "Assignment",
        "AssignmentProblem",
        "DenseCosts",
        "PointCosts",
        "SparseCosts",
        "Status",
        "assign",
    ],
    "detect": ["detect"],
    "detect.spots": ["DetectionSettings"],
    "detections": ["Detections"],
    "errors": ["InputError", "OutbidError", "ResourceError", "SettingsError", "SolverError"],
    "formats": ["read_detections", "read_record", "read_tracks", "write_detections", "write_tracks"],
    "match": ["Match", "match"],
    "score": ["Scores", "score"],
    "track": ["TrackingRun", "TrackingSettings", "track"],
    "tracks": ["Tracks"],
}

__all__ = sorted(name for names in _PUBLIC.values() for name in names)  # noqa: PLE0605


class _House(ModuleType):
    """The package itself, whose public names are properties.

    A module-level ``__getattr__`` would not do: importing the module ``track`` binds its name here,
    and ``from outbid.tracker import track`` would then give the module instead of the function.
    """


def _looked_up(module: str, name: str) -> property:
    def look_up(_: ModuleType) -> object:
        return getattr(import_module(f".{module}", __name__), name)

    def keep(_: ModuleType, submodule: object) -> None:
        """The import system wants to bind the submodule of the same name: keep the public name."""

    return property(look_up, keep)


for _module, _names in _PUBLIC.items():
    for _name in _names:
        setattr(_House, _name, _looked_up(_module, _name))
sys.modules[__name__].__class__ = _House
