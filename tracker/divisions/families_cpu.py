"""CPU kernel of families: measurements of a mother cell with two daughters.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def measure(
    mother, first, beside, second, ended, follower, going, frame, position, shift, log_density, log_starts,
    numbers, constants, along2, aside2, apart2, growth, chance, usual_growth, crowd,
):  # pragma: no cover  # fmt: skip
    """Measure families; the results are fields of `Families`.

    mother, first, second (P,) i8 rows, beside (P,) i8 where the first is in the frame of the second, ended
    (P,) bool; follower, frame (N,) i8, going, log_density, log_starts (N,), position, shift (N, A) f8 of the
    movie; numbers: spacing, usual variance, log of the share of starts by chance behind ends by chance,
    freedom of Student's t; constants: log densities at the middle of that t, of a step and of a growth.
    Written: along2, aside2, growth, chance, usual_growth, crowd (P,), apart2 (P, A) f8.
    """
    spacing, usual2, log_lost, freedom = numbers
    axes = position.shape[1]
    log_spacing = math.log(max(spacing, 1e-300))
    for e in range(len(mother)):
        m, one, a, b = mother[e], first[e], beside[e], second[e]
        mixed, middle2, distance2, step2 = 0.0, 0.0, 1e-300, 0.0
        gap, step = frame[b] - frame[m], frame[one] - frame[m]
        for k in range(axes):
            ahead = position[m, k] + gap * shift[m, k]
            apart = position[b, k] - position[a, k]
            middle = position[a, k] + apart / 2 - ahead
            mixed += middle * apart
            middle2 += middle * middle
            distance2 += apart * apart
            step2 += (position[one, k] - position[m, k] - step * shift[m, k]) ** 2
            apart2[e, k] = apart * apart
        along2[e] = mixed * mixed / distance2
        aside2[e] = max(middle2 - along2[e], 0.0)
        growth[e], usual_growth[e] = np.nan, constants[1]
        x, y = follower[a], follower[b]
        if x >= 0 and y >= 0 and frame[x] == frame[a] + 1 and frame[y] == frame[a] + 1:
            further = 0.0
            for k in range(axes):
                apart = position[b, k] - position[a, k]
                further += (position[y, k] - position[x, k] - apart) * apart
            growth[e] = further / math.sqrt(distance2)
            far2 = growth[e] * growth[e] / (2 * usual2)
            usual_growth[e] -= 0.5 * (freedom + 1) * math.log1p(far2 / freedom)
        if ended[e]:
            chance[e] = log_starts[a] + log_lost
        else:
            far2 = step2 / (step * usual2)
            chance[e] = constants[0] - 0.5 * (freedom + axes) * math.log1p(far2 / freedom)
            chance[e] = max(chance[e] - 0.5 * axes * math.log(step), going[m])
        chance[e] += log_starts[b]
        crowd[e] = -log_density[m] / axes - log_spacing
