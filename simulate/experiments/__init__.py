"""Experiments on simulated movies; each experiment is one file in this folder.

A file holds `EXPERIMENT`, an instance of `outbid.simulate.experiment.Experiment`, and is found by its name:

kappa, persistence, density, misses, clutter    accuracy against one quantity, beside the prediction of theory
calibration                                     learned quantities against simulated ones
figure5                                         Vasconcelos & Rosenhahn's Figure 5
rivals, five_frames                             other packages, tuned on the truth and at their defaults
papers/                                         tables and figures of the three papers on assignment
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from outbid.errors import SettingsError

from ..experiment import Experiment

EXPERIMENTS = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg))
"""Names that `experiment_named` accepts."""


def experiment_named(name: str) -> Experiment:
    """The experiment in the file of this name.

    Raises
    ------
    SettingsError
        If there is none.

    Examples
    --------
    >>> experiment_named("kappa").cell
    ('kappa', 'linker', 'given')
    """
    if name not in EXPERIMENTS:
        raise SettingsError(f"There is no experiment {name!r}. Choose from: {', '.join(EXPERIMENTS)}.")
    found = import_module(f".{name}", __package__).EXPERIMENT
    if not isinstance(found, Experiment):
        raise SettingsError(f"EXPERIMENT of {name} is none; let its class inherit from Experiment.")
    return found


def described() -> str:
    """Names, descriptions and running times of all experiments, as text.

    Examples
    --------
    >>> print(described().splitlines()[0])
    calibration  Learned against simulated quantities: step, persistence, noise, gate, confidence.
    """
    width = max(len(name) for name in EXPERIMENTS)
    lines = []
    for name in EXPERIMENTS:
        experiment = experiment_named(name)
        lines += [f"{name:<{width}}  {experiment.shows}", f"{'':<{width}}  Takes {experiment.takes}."]
    return "\n".join(lines)
