"""Reliability of tracks: the expected number of wrong links, and doubtful tracks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .tracks import Tracks

DOUBTFUL = 0.5
"""Probability of a link below which it is more likely wrong than right, and its track doubtful."""
MANY_WRONG = 0.1
"""Share of expected wrong links above which a run warns: a track of ten links then has one wrong link."""


_TOGETHER = 2.0
"""Prior: links that are wrong together, those of two tracks that exchange."""
_OFF = 0.1
"""Error level: standard deviation of the stated number of wrong links, in it, where the model is wrong."""
_UNSEEN = 5e-4
"""Error level: share of wrong links that no probability shows, as of tracks that are joined by chance."""
_NINETY = 1.645
"""Standard deviations of a normal distribution that hold nine of ten values."""


@dataclass(frozen=True)
class Reliability:
    """Summary of the link probabilities of all tracks.

    Parameters
    ----------
    links : int
        Links with a probability.
    wrong : float
        How many of them are expected to be wrong: the sum of 1 - probability.
    doubtful : int
        Tracks that have a link with a probability below `DOUBTFUL`.
    within : tuple of int
        Least and largest number of wrong links, which holds the true one in 90 % of movies.
    """

    links: int
    wrong: float
    doubtful: int
    within: tuple[int, int]

    @property
    def share(self) -> float:
        """Share of the links that are expected to be wrong."""
        return self.wrong / max(self.links, 1)


def reliability_of(tracks: Tracks) -> Reliability | None:
    """Summarise the link probabilities; None if no link has a probability.

    Examples
    --------
    >>> from .detections import Detections
    >>> from .tracks import Tracks
    >>> seen = Detections.from_table([0, 1, 2, 3], [[0, 0, x] for x in range(4)])
    >>> links = np.array([[0, 1], [1, 2], [2, 3]])
    >>> reliability_of(Tracks(seen, links, link_probability=np.array([0.9, 0.4, 0.7])))
    Reliability(links=3, wrong=1.0, doubtful=1, within=(0, 3))
    """
    probability = tracks.link_probability
    if probability is None or not np.isfinite(probability).any():
        return None
    finite = np.isfinite(probability)
    unlikely = finite & (probability < DOUBTFUL)
    of = tracks.track_id[tracks.links[unlikely, 1]]
    doubt = 1 - probability[finite]
    return Reliability(len(doubt), float(doubt.sum()), len(np.unique(of)), _interval(doubt))


def _interval(doubt: NDArray[np.float64]) -> tuple[int, int]:
    """Least and largest number of wrong links, by the probabilities of these (E,).

    The number is that of a gamma distribution, whose variance is that of links that are wrong together, and
    of what the model does not know. Its quantiles are those of Wilson and Hilferty.

    Examples
    --------
    >>> _interval(np.full(100, 0.5)), _interval(np.zeros(100))
    ((36, 66), (0, 0))
    """
    unseen = _UNSEEN * len(doubt)
    mean = float(doubt.sum()) + unseen / 2
    variance = _TOGETHER * (float((doubt * (1 - doubt)).sum()) + unseen) + (_OFF * float(doubt.sum())) ** 2
    if not variance > 0:
        return round(mean), round(mean)
    part = variance / (9 * mean**2)
    least, most = (mean * max(1 - part + side * _NINETY * part**0.5, 0.0) ** 3 for side in (-1, 1))
    return int(least), min(int(np.ceil(most)), len(doubt))


def sentence_on(tracks: Tracks) -> str:
    """A sentence with the number of tracks, of detections, of expected wrong links and of doubtful tracks.

    A detection without links is a track, as in every table of tracks.

    Examples
    --------
    >>> from .detections import Detections
    >>> from .tracks import Tracks
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> links = np.array([[0, 1], [1, 2]])
    >>> sentence_on(Tracks(seen, links, link_probability=np.array([0.7, 0.4])))
    '1 track from 3 detections; about 1 (0 to 2) of 2 links is expected to be wrong; 1 track is doubtful.'
    >>> sentence_on(Tracks(seen, links))
    '1 track from 3 detections; 2 links, without probabilities.'
    """
    found = reliability_of(tracks)
    alone = int(((tracks.successors == 0) & (tracks.predecessors == 0)).sum())
    single = f", {alone:,} of them single detections," if alone else ""
    seen = _counted(len(tracks.detections), "detection")
    head = f"{_counted(tracks.track_count, 'track')}{single} from {seen}"
    if found is None:
        links = _counted(len(tracks.links), "link")
        return f"{head}; {links}{', without probabilities' if len(tracks.links) else ''}."
    wrong, (least, most) = round(found.wrong), found.within
    within = f"({least:,} to {most:,})" if wrong else f"(up to {most:,})"
    number = f"{f'about {wrong:,}' if wrong else 'none'} {within}" if most else "none"
    doubtful = _counted(found.doubtful, "track") if found.doubtful else "no track"
    return (
        f"{head}; {number} of {_counted(found.links, 'link')} {'is' if wrong <= 1 else 'are'} expected to be "
        f"wrong; "
        f"{doubtful} {'is' if found.doubtful <= 1 else 'are'} doubtful."
    )


def warning_on(tracks: Tracks) -> str:
    """A warning if more than a tenth of the links are expected to be wrong; else empty.

    Examples
    --------
    >>> from .detections import Detections
    >>> from .tracks import Tracks
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]])
    >>> print(warning_on(Tracks(seen, np.array([[0, 1]]), link_probability=np.array([0.25]))))
    Warning: 75 % of the links are expected to be wrong. Do not rely on single tracks; outbid advise shows \
which distance, or which shorter frame interval, would do better.
    """
    found = reliability_of(tracks)
    if found is None or found.share <= MANY_WRONG:
        return ""
    return (
        f"Warning: {100 * found.share:.0f} % of the links are expected to be wrong. Do not rely on single "
        "tracks; outbid advise shows which distance, or which shorter frame interval, would do better."
    )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def rounded(error: float) -> str:
    """An error to one digit; without an exponent from .0001 to a million.

    Examples
    --------
    >>> rounded(53.9), rounded(0.00042), rounded(0.0)
    ('50', '0.0004', '0')
    """
    text = f"{error:.1g}"
    return f"{float(text):.0f}" if 1 <= abs(error) < 1e6 else text


def next_step(tracks: Tracks, source: str, output: str) -> str:
    """What to do next with tracks of a file, by how far they are to be trusted.

    Examples
    --------
    >>> from .detections import Detections
    >>> from .tracks import Tracks
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]])
    >>> next_step(Tracks(seen, np.array([[0, 1]]), link_probability=np.array([0.6])), "s.csv", "t.csv")
    'Next: outbid advise s.csv, which shows what a distance or a shorter interval would do.'
    >>> next_step(Tracks(seen, np.array([[0, 1]]), link_probability=np.array([0.99])), "s.csv", "t.csv")
    'Next: outbid report t.csv, or outbid measure t.csv -o motion.csv.'
    """
    found = reliability_of(tracks)
    if not len(tracks.links) or (found is not None and found.share > MANY_WRONG):
        return f"Next: outbid advise {source}, which shows what a distance or a shorter interval would do."
    if found is None:
        return f"Next: outbid report {output}; without --max-distance every link has a probability."
    cut = (
        f", or outbid filter {output} --cut-below 0.5"
        if found.doubtful
        else f", or outbid measure {output} -o motion.csv"
    )
    return f"Next: outbid report {output}{cut}."
