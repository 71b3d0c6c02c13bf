"""Preview of a detection: candidates in some frames as a function of the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..settings.detection import DetectionSettings
from .frames import checked
from .model import SpotModel, learn, other_sign_stands_out
from .spots import FrameSpots, spots_of_frame
from .transform import CosineTransform

Learned = tuple[SpotModel | None, DetectionSettings]
_STEPS = 16
"""Number of thresholds to choose from."""
_BAR = 40
"""Characters of the longest bar of the table."""


def preview_numbers(count: int) -> list[int]:
    """Numbers of the frames that a preview shows: the first, the middle and the last."""
    return sorted({0, count // 2, max(count - 1, 0)})


@dataclass(frozen=True, eq=False)
class Preview:
    """All candidates in some frames, independent of the threshold.

    Parameters
    ----------
    frame : (n,) int64 array
        Index of the frame of each candidate, among the given frames.
    position : (n, 3) float64 array
        Voxel centres times `spacing`, best candidate first.
    quality : (n,) float64 array
        In standard deviations, non-increasing: the first ``count_above(threshold)`` exceed a threshold.
    probability : (n,) float64 array
        Probability that each candidate is not noise.
    automatic : float
        The threshold that gives as many spots as detection without a threshold.
    settings : DetectionSettings
        Settings with the radii that were used.
    other_sign : bool
        Whether spots of the opposite sign (dark instead of bright, or the reverse) are more significant.
    """

    frame: NDArray[np.int64]
    position: NDArray[np.float64]
    quality: NDArray[np.float64]
    probability: NDArray[np.float64]
    automatic: float
    settings: DetectionSettings
    other_sign: bool = False

    @property
    def threshold(self) -> float:
        """The threshold of the settings, or the automatic one."""
        return self.automatic if self.settings.threshold is None else self.settings.threshold

    def count_above(self, threshold: ArrayLike) -> NDArray[np.int64]:
        """Number of candidates whose quality exceeds each threshold; same shape as the thresholds."""
        return len(self.quality) - np.searchsorted(self.quality[::-1], threshold, side="right")

    def false_above(self, threshold: ArrayLike) -> NDArray[np.float64]:
        """Expected number of these that are noise; same shape as the thresholds."""
        sums = np.concatenate([[0.0], np.cumsum(1 - self.probability)])
        return sums[self.count_above(threshold)]

    def thresholds(self) -> NDArray[np.float64]:
        """At most (16,) thresholds to choose from, increasing and evenly spaced in their logarithm.

        They range from the worst candidate to the best, and include `threshold`.
        """
        best = float(self.quality[0]) if len(self.quality) else 1.0
        low = max(float(self.quality[-1]) if len(self.quality) else 1.0, best / 1000)
        steps = np.geomspace(low, max(best, low), _STEPS)
        if self.threshold > 0:
            steps[np.argmin(np.abs(np.log(steps / self.threshold)))] = self.threshold
        return np.unique(steps)

    def table(self) -> str:
        """Table of spot counts by threshold, as text; the current threshold is marked."""
        chosen, steps = self.threshold, self.thresholds()
        counts, false = self.count_above(steps), self.false_above(steps)
        longest = np.log1p(max(int(counts.max()), 1))
        name = "automatic" if self.settings.threshold is None else "given"
        lines = ["threshold   spots   noise"]
        for step, count, noise in zip(steps.tolist(), counts.tolist(), false.tolist(), strict=True):
            bar = "#" * round(_BAR * float(np.log1p(count) / longest))
            mark = f"  <- {name}" if step == chosen else ""
            lines.append(f"{step:9.4g} {count:7d} {noise:7.1f}  {bar}{mark}")
        return "\n".join(lines)


def preview(
    images: Sequence[NDArray] | NDArray, settings: DetectionSettings, *, learned: Learned | None = None
) -> Preview:
    """Find candidates in some frames without a fixed threshold: for `outbid detect --preview` and forms.

    For any threshold, `detect` finds in these frames exactly the candidates that exceed it, if it uses the
    same model. A form calls `preview` once for each frame and radius; for any threshold, the points to show
    are ``position[:count_above(threshold)]``.

    Parameters
    ----------
    images : sequence of (Z, Y, X) array of real numbers
        The frames, or a single frame. Z is 1 in 2D.
    settings : DetectionSettings
        Settings; the threshold is not applied.
    learned : (SpotModel or None, DetectionSettings), optional
        The result of `learn_from` for these settings; by default the model is learned from `images`.

    Returns
    -------
    Preview

    Raises
    ------
    InputError
        If a frame is not 3-dimensional or holds no real numbers, or there is none.

    Examples
    --------
    >>> y, x = np.ogrid[:40, :40]
    >>> bright, faint = (np.exp(-((y - c) ** 2 + (x - 12) ** 2) / 8) for c in (10, 30))
    >>> light = np.random.default_rng(0).poisson(50 + 900 * bright + 100 * faint)[None]
    >>> shown = preview(light, DetectionSettings(radius=2.8))
    >>> shown.count_above([5, 60]).tolist(), shown.position[0].round().tolist()
    ([2, 1], [0.0, 10.0, 12.0])
    """
    given = [images] if isinstance(images, np.ndarray) and images.ndim == 3 else list(images)
    if not given:
        raise InputError("There is no frame to look at. Choose one.")
    frames, dct = [checked(image, number) for number, image in enumerate(given)], CosineTransform()
    other = other_sign_stands_out(frames[0], settings)
    model, used = learned or learn(frames, settings, dct)
    free, spots = replace(used, threshold=None, device="cpu"), [FrameSpots.none()]
    if model is not None:
        spots = [spots_of_frame(image, model, free, dct) for image in frames]
    quality = np.concatenate([each.features["quality"] for each in spots])
    order = np.argsort(-quality, kind="stable")
    return Preview(
        np.repeat(np.arange(len(spots)), [len(each.position) for each in spots])[order],
        np.concatenate([each.position for each in spots])[order],
        quality[order],
        np.concatenate([each.features["probability"] for each in spots])[order],
        _automatic(quality[order], sum(each.keep for each in spots)),
        replace(used, threshold=settings.threshold), other,
    )  # fmt: skip


def _automatic(quality: NDArray[np.float64], keep: int) -> float:
    """A threshold that so many of these qualities, best first, exceed."""
    if keep == 0:  # nothing exceeds the best
        return float(quality[0]) if len(quality) else 0.0
    return float(quality[keep - 1] + quality[keep]) / 2 if keep < len(quality) else 0.5 * float(quality[-1])
