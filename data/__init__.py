"""Small samples with true tracks that come with the package; `catalogue` downloads public data.

``walks`` is simulated: some 120 particles on persistent walks in a box of 30 x 40 x 40 for 30 frames, seen
with noise, misses and clutter; 3429 detections. Its run record is next to it, and reproduces it::

    outbid simulate -o again.csv --config data/walks.csv.json
"""

from importlib.resources import files
from pathlib import Path

SAMPLES = ("walks",)
"""Names of the samples."""


def sample(name: str) -> Path:
    """Path of a sample: a CSV table of true tracks.

    Parameters
    ----------
    name : str
        One of `SAMPLES`.

    Raises
    ------
    ValueError
        If there is no such sample.

    Examples
    --------
    >>> from outbid import read_tracks
    >>> truth = read_tracks(sample("walks"))
    >>> len(truth.detections), len(truth.links)
    (3429, 3195)
    """
    if name not in SAMPLES:
        raise ValueError(f"There is no sample {name!r}. Choose one of: {', '.join(SAMPLES)}.")
    return Path(str(files(__name__) / f"{name}.csv"))
