"""Tables and figures of the three papers on assignment on GPUs; what the papers print is in values.json.

A file holds `PAPERS`, instances of `outbid.simulate.paper.Paper` by name.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from ...paper import Paper

PAPERS: dict[str, Paper] = {}
"""Tables and figures by name."""
for _module in pkgutil.iter_modules(__path__):
    PAPERS |= import_module(f".{_module.name}", __name__).PAPERS
PAPERS = dict(sorted(PAPERS.items()))
