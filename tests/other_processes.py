"""What other processes do; in a module of its own, which they can import."""

from __future__ import annotations

import os
import signal

from outbid.movies.jobs import TrackJob


class KillsItself(TrackJob):
    """A job that ends its process at one movie, as the system does that has no memory left."""

    def origin(self, source: str) -> dict[str, str]:
        if source.endswith("c.csv"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().origin(source)


def limited(most: int) -> None:
    """Let this process write no larger files, as on a disk that is full."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
