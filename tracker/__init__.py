"""Outbid tracks particles in 3D microscopy by exact assignment, and certifies every answer.

The folder ``tracker/`` is the package `outbid` itself; ``simulate/`` is imported as `outbid.simulate`,
``viewers/`` as `outbid.viewers` and ``data/`` as `outbid.data`. This is the map. Imports run downwards
only. The map of a folder is the docstring of its ``__init__``.

9   `cli`                the commands, one a file; one more joins through the entry points ``outbid.commands``
8   `ranges`             a movie in ranges of frames, here or on many machines
    `warming`            compiles the kernels of all this before their first use
    `movies`             many movies: in processes or on any executor; one model for all; what a job is
    `extent`             a region, some frames, a mask: of images before detection, of tracks after linking
    `estimate`           the time and the memory that a run of `track` would take
7   `tracking`           `track`: what commands, plugins and Python call
    `proofreading`       a model that is held while pins come and go; the links that are in doubt
    `stream`             the same for a file larger than the memory, some frames at a time
    `live`               links detections frame by frame while a movie is recorded
    `advise`             previews the effect of a linking distance; suggests changes to the recording
    `measuring`          tracks to tables of motion: diffusion, persistence, cycle times, with errors
6   `linked`             learned linking: read, learn, decide, sum up
    `summary`            what was learned, in the user's units, as text and as plain values
    `first_step`         step length and drift from nearest neighbours, before any linking
    `learn`              the model from the movie, by expectation and maximisation over `inference`
    `lineage`            the posterior probability of divisions and merges, beside that of links
5   `inference`          the posterior over links under a model: joint probabilistic data association
    `images`             opens movies from any file or array; reads them frame by frame
4   `linking`, `gaps`    linking with a gate: frame to frame, then track ends to later track starts
    `batches`            divides a movie into batches that fit the memory of a GPU
    `scoring`            scores of tracks against the truth, one family of scores a file
    `detection`          image stacks to detections: spots, or centroids of labels
    `formats`            files in and out, one format a file
    `given`              converts data frames, dicts, arrays and paths to detections and tracks
    `filtering`, `filling`, `relabel`  some of the tracks; positions in gaps; label images by track
    `settings`           `TrackingSettings`: all that determines the result of `track`
    `pins`               what a person states of links, which holds exactly
3   `matching`           matches two point clouds: gate, cost, assignment
    `model`              what `learn` and `inference` assume: motion, association, movie, gate
    `reading`, `known`   detections as arrays for learned linking; values that the user fixes
    `tracks`             `Tracks`: which detection follows which
    `remarks`            sentences on detections that can hardly be linked, or are there twice
2   `assignment`         exact assignment with optional rows and columns, and its proof; knows no frame
    `gating`             all pairs nearer than a radius, by a cell list
    `neighbours`         the nearest few points of each point, by a cell list
    `detections`         `Detections`: where particles were seen, frame by frame
    `tables`             detections and tracks as Arrow tables, for files and data frames
    `reliability`, `drawn`  how far to trust tracks; a picture of them in a notebook
    `setting_values`, `setting`  settings by keyword; what is declared of a setting
    `detection_settings`  `DetectionSettings`: all that determines the result of `detect`
    `device`             which device works
1   `_arrays`            where arrays live and what works on them; the only module that imports CuPy
    `_cuda`              .cu files compiled and launched
    `_threads`, `_lanes` threads, and threads with a stream of their own on a GPU
    `_timing`            seconds of stages
    `signatures`         the kernels of all commands, with the types of their arguments
    `_kernels`           how the functions of ``…_cpu.py`` are compiled; only they import it
    `_shipped`           compiled kernels that a wheel brings
    `_compiling`         reports that kernels are compiled, which their first use does, and divides it
    `_interrupt`         a signal that asks for the end, looked at between stages
    `errors`             what can go wrong, by who can fix it

Kernels stand beside the module that calls them: in ``…_cpu.py`` for Numba, in ``….cu`` for CUDA with
``…_gpu.py`` to launch them. Only `outbid.viewers.forms` and `outbid.viewers.window` import napari and Qt.
To add a solver, a format or an experiment, add one file.

The public names below are imported at their first use (PEP 562), so that importing the package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .assignment import Assignment as Assignment
    from .assignment import AssignmentProblem as AssignmentProblem
    from .assignment import DenseCosts as DenseCosts
    from .assignment import PointCosts as PointCosts
    from .assignment import SparseCosts as SparseCosts
    from .assignment import Status as Status
    from .assignment import assign as assign
    from .detection import detect as detect
    from .detection_settings import DetectionSettings as DetectionSettings
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
    from .formats.frames import Images as Images
    from .images import open_images as open_images
    from .matching import Match as Match
    from .matching import match as match
    from .measuring import Measures as Measures
    from .measuring import measure as measure
    from .movies.many import detect_many as detect_many
    from .movies.many import track_many as track_many
    from .scoring import Scores as Scores
    from .scoring import score as score
    from .settings import TrackingSettings as TrackingSettings
    from .tracking import TrackingRun as TrackingRun
    from .tracking import track as track
    from .tracks import Tracks as Tracks
    from .warming import warm_up as warm_up

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
    "detections": ("Detections",),
    "errors": ("InputError", "OutbidError", "ResourceError", "SettingsError", "SolverError"),
    "formats": ("read_detections", "read_record", "read_tracks", "write_detections", "write_tracks"),
    "formats.frames": ("Images",),
    "images": ("open_images",),
    "movies.many": ("detect_many", "track_many"),
    "matching": ("Match", "match"),
    "measuring": ("Measures", "measure"),
    "scoring": ("Scores", "score"),
    "settings": ("TrackingSettings",),
    "detection": ("detect",),
    "detection_settings": ("DetectionSettings",),
    "tracking": ("TrackingRun", "track"),
    "tracks": ("Tracks",),
    "warming": ("warm_up",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
_PACKAGES = ("data", "simulate", "viewers")
"""Subpackages in folders of their own, which ``import outbid`` makes available as attributes."""

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605


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
    return sorted({*globals(), *__all__, *_PACKAGES, "__version__"})
