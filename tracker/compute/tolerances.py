"""Levels: what is so little that it does not count, and rounds after which an iteration ends."""

NEGLIGIBLE = 1e-3
"""Error level: probability, weight, ratio against chance or relative change that does not count."""
LEAST = NEGLIGIBLE * NEGLIGIBLE
"""Guard: share, rate or relative variance that counts as zero."""
TINY = LEAST * NEGLIGIBLE
"""Guard: count, weight, probability or distance in spacings that counts as zero."""
LARGEST = 1e18
"""Guard: largest length, and inverse of the least one, whose squares do not overflow."""
SURE = 12.0
"""Guard: log odds beyond which all are alike."""
ROUNDS = 7
"""Guard: most rounds of an iteration that ends before, where nothing moves any more."""
FEW = 3
"""Guard: rounds of an iteration within another one, or from what had converged before."""
PRIOR = 5.0
"""Prior: pseudo-counts of every rate and variance, and of weights of 0."""
OPEN = 0.02
"""Error level: probability of no link above which a detection gets further candidates; their least odds."""
