"""Tables and figures of the three papers on assignment on GPUs; one more is one more file here.

A file holds `PAPER`, an instance of `outbid.simulate.paper.Paper`, and is found by its name, with hyphens for
underscores: date-nagi-table1 to table5, figure2, figure3; roverso-figure1 to figure3; vasconcelos-figure5,
figure6 and failure. What the papers print is in values.json.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from outbid.errors import SettingsError

from ...paper import Paper

PAPERS = tuple(sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)))
"""Names that `paper_named` accepts."""


def paper_named(name: str) -> Paper:
    """The table or figure in the file of this name.

    Raises
    ------
    SettingsError
        If there is none.

    Examples
    --------
    >>> paper_named("date-nagi-table1").cell
    ('n', 'case')
    """
    if name not in PAPERS:
        raise SettingsError(f"There is no table {name!r}. Choose from: {', '.join(PAPERS)}.")
    found = import_module(f".{name.replace('-', '_')}", __package__).PAPER
    assert isinstance(found, Paper)
    return found


def described() -> str:
    """Names, descriptions and running times, as text.

    Examples
    --------
    >>> print(described().splitlines()[0])
    date-nagi-figure2    Date & Nagi's Figure 2: seconds over n of CPU and GPU, [0, n].
    """
    width = max(map(len, PAPERS))
    lines = []
    for name in PAPERS:
        paper = paper_named(name)
        lines += [f"{name:<{width}}  {paper.shows}", f"{'':<{width}}  Takes {paper.takes}."]
    return "\n".join(lines)
