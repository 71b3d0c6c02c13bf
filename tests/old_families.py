"""Families of which nothing but the rows is known."""

import numpy as np

from outbid.divisions.families import Families


def families(mother: list[int], first: list[int], second: list[int]) -> Families:
    """Families of which nothing but the rows is known."""
    rows = [np.array(side, dtype=np.int64) for side in (mother, first, second)]
    none, zero, axes = np.zeros(len(mother), dtype=np.bool_), np.zeros(len(mother)), (len(mother), 3)
    return Families(*rows, none, none, zero, zero, np.zeros(axes), *[zero] * 4, 1.0, 1e-4, 0.0)
