"""Lineage: divisions as edges of three slots, in the same belief propagation as the links of a posterior.

`hypotheses`   what tracks do: go on, divide or merge; the decision on links, also under pins
`search`       divisions of a movie
`candidates`   mothers and pairs of daughters
`daughters`    model of divisions: rate, separation and direction of daughters
`packing`      belief propagation for edges of two and three slots
`learning`     EM of this model, in competition with links
`control`      false divisions: reversed time and evidence
`reverse`      a movie, its model and its posterior in reversed time
`lifetimes`    ages at which cells divide
`joint`        links and divisions in one assignment
`again`        divisions under pins, with all models held

The entry point is `hypothesis`.
"""

from .hypotheses import Dividing, Hypothesis, Merging, Plain, hypothesis
from .search import Lineage, find_divisions

__all__ = ["Dividing", "Hypothesis", "Lineage", "Merging", "Plain", "find_divisions", "hypothesis"]
