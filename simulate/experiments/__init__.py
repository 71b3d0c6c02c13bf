"""Experiments on simulated movies, and tables of papers.

A file holds `EXPERIMENTS`, instances of `outbid.simulate.experiment.Experiment` by name:

comparisons     linkers on the same movies, over one quantity against theory, or other packages on a grid
calibration     learned quantities against simulated ones
papers/         tables and figures of the three papers on assignment
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from outbid.errors import SettingsError

from ..experiment import Experiment, Study
from .papers import PAPERS

EXPERIMENTS: dict[str, Experiment] = {}
"""Experiments by name."""
for _module in pkgutil.iter_modules(__path__):
    if not _module.ispkg:
        EXPERIMENTS |= import_module(f".{_module.name}", __name__).EXPERIMENTS
EXPERIMENTS = dict(sorted(EXPERIMENTS.items()))
STUDIES: dict[str, Study] = {**EXPERIMENTS, **PAPERS}
"""Experiments, and tables and figures of papers, by name."""


def study_named(name: str) -> Study:
    """The experiment, table or figure of this name.

    Raises
    ------
    SettingsError
        If there is none.

    Examples
    --------
    >>> study_named("kappa").cell, study_named("date-nagi-table1").cell
    (('kappa', 'linker', 'given'), ('n', 'case'))
    """
    if name not in STUDIES:
        raise SettingsError(f"There is no experiment {name!r}. Choose from: {', '.join(STUDIES)}.")
    return STUDIES[name]


def described() -> str:
    """Names, descriptions and running times of all, as text.

    Examples
    --------
    >>> print(described().splitlines()[0])
    calibration  Learned against simulated quantities: step, persistence, noise, gate, confidence.
    """
    parts = []
    for studies in (EXPERIMENTS, PAPERS):
        width = max(map(len, studies))
        lines = (
            f"{name:<{width}}  {one.shows}\n{'':<{width}}  Takes {one.takes}."
            for name, one in studies.items()
        )
        parts.append("\n".join(lines))
    return "\n\nTables and figures of papers:\n\n".join(parts)
