"""How many examples the theorems and the fuzz try: few for every change, many by night.

``OUTBID_EXAMPLES=night`` chooses the long profile, which `make nightly` does.
"""

import os

NIGHT = "night"
PROFILE = os.environ.get("OUTBID_EXAMPLES", "quick")
_SHARE = 5
"""By so much the quick profile tries less."""
LEAST = 5
"""Examples of the quick profile, at least."""


def examples(night: int, least: int = LEAST) -> int:
    """Number of examples by the profile, from that of the night.

    Examples
    --------
    >>> examples(300) in (60, 300)
    True
    """
    return night if PROFILE == NIGHT else min(max(night // _SHARE, least), night)
