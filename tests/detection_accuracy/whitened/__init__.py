"""The next detector: one whitened matched filter, whose noise is all that a frame holds but its spots.

It is judged here until it replaces `outbid.detection`, which keeps its door: `detect` takes and gives the
same. In the 51 kinds of images in uneven light it finds most of what the detector of today loses; flat
crowds, saturated spots and the choice of bodies are what it lacks.

`stabilise`   a frame in units of its camera's noise
`spectrum`    the spectrum of what is no spot, and the whitened matched filter
`width`       the width of the spots of a movie
`joint`       the joint fit of all spots in the response
`decision`    which candidates are kept, and the probability of each one
`found`       the spots of a frame, as columns; `model`: what is learned of a movie first
`bodies`      bodies without a common profile, on request
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from outbid import Detections, DetectionSettings
from outbid.detection.found import FEATURES, Found, empty

from .found import find_in
from .model import learn
from .spectrum import Transform


def detect(
    frames: Sequence[NDArray], settings: DetectionSettings | None = None, *, workers: int = 2
) -> tuple[Detections, DetectionSettings]:
    """Find the spots of a movie, as `outbid.detect` does."""
    how = Transform(workers)
    numbers = np.unique(np.linspace(0, max(len(frames) - 1, 0), 4).astype(int)).tolist()
    model, used = learn([frames[number] for number in numbers], settings or DetectionSettings(), how)
    found = [
        empty() if model is None else _kept(find_in(image, number, model, used, how))
        for number, image in enumerate(frames)
    ]
    frame = np.repeat(np.arange(len(found), dtype=np.int32), [one.keep for one in found])
    features = {name: np.concatenate([one.features[name] for one in found]) for name in FEATURES}
    return Detections(
        frame.astype(np.int32), np.concatenate([one.position for one in found]), "pixel", features
    ), used


def _kept(found: Found) -> Found:
    """The accepted candidates, sorted by position."""
    order = np.lexsort(found.position[: found.keep].T[::-1])
    features = {name: values[: found.keep][order] for name, values in found.features.items()}
    return Found(found.position[: found.keep][order], features, found.keep)
