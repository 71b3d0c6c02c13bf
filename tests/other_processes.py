"""What other processes do; in a module of its own, which they can import."""

from __future__ import annotations

import os
import signal

from outbid.jobs import TrackJob


class KillsItself(TrackJob):
    """A job that ends its process at one movie, as the system does that has no memory left."""

    def origin(self, source: str) -> dict[str, str]:
        if source.endswith("c.csv"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().origin(source)
