"""Modules under their former names, for one release: ``import outbid.live`` finds `outbid.learned.live`.

Of the former names those remain that the documentation showed, or from which a script may have imported.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "advise": "simulate.advise",
    "assignment.auction": "assignment.papers.auction",
    "assignment.greedy_switching": "assignment.papers.greedy_switching",
    "assignment.hungarian": "assignment.papers.hungarian",
    "detection_settings": "settings.detection",
    "detections": "particles.detections",
    "extent": "edit.crop",
    "filling": "edit.fill_gaps",
    "filtering": "edit.filter",
    "formats.frames": "formats.images.frames",
    "gaps": "gated.gaps",
    "given": "formats.coerce",
    "images": "formats.images.opening",
    "inference": "learned.inference",
    "learn": "learned.learn",
    "lineage": "learned.lineage",
    "linking": "gated.linking",
    "live": "learned.live",
    "matching": "gated.matching",
    "model": "learned.model",
    "movies": "work",
    "proofreading": "edit.proofreading",
    "relabel": "edit.relabel",
    "reliability": "particles.reliability",
    "remarks": "particles.remarks",
    "setting": "settings.declare",
    "stream": "work.stream",
    "summary": "learned.summary",
    "tables": "particles.tables",
    "tracks": "particles.tracks",
    "warming": "compute.warming",
}
"""New names of modules by their former ones, without ``outbid.``; modules within follow their folder."""


def new_name(name: str) -> str | None:
    """The present name of a module that has moved; None if none of that name has.

    Examples
    --------
    >>> new_name("outbid.live"), new_name("outbid.movies.many"), new_name("outbid.scoring")
    ('outbid.learned.live', 'outbid.work.many', None)
    """
    head, *rest = name.removeprefix("outbid.").split(".")
    while head not in MOVED and rest:
        head = f"{head}.{rest.pop(0)}"
    return ".".join(["outbid", MOVED[head], *rest]) if head in MOVED else None


class FormerNames(MetaPathFinder, Loader):
    """Finds modules by their former names, with a warning that states the present one."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        return ModuleSpec(name, self) if name.startswith("outbid.") and new_name(name) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = new_name(spec.name)
        assert new is not None
        # Of this module, the import system, and the line that asked for the former name.
        warnings.warn(f"{spec.name} is {new} now; the former name ends with the next release.",
                      DeprecationWarning, stacklevel=2)  # fmt: skip
        found = import_module(new)
        spec.loader_state = found.__spec__  # which the import system replaces
        return found

    def exec_module(self, module: ModuleType) -> None:
        """The module was executed under its present name, which it keeps."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def serve_former_names() -> None:
    """Find modules by former names as well.

    First of all finders: a folder under its former name would find its modules a second time.
    """
    if not any(isinstance(finder, FormerNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, FormerNames())
