"""Before a movie is detected: the spots of one frame against the threshold, and the automatic choice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .radius import estimate_radius, other_sign_stands_out
from .spots import DetectionSettings, automatic_threshold, candidates, checked

_STEPS = 16
_BAR = 40


@dataclass(frozen=True, eq=False)
class Preview:
    """What a frame holds, whatever the threshold will be.

    Parameters
    ----------
    position : (n, 3) float64 array
        Voxel centres times `spacing`: every local maximum of the filter's answer, the best first.
    quality : (n,) float64 array
        Their quality, falling: above a threshold are the first ``count_above(threshold)``.
    automatic : float
        The threshold that `detect` finds for this frame.
    noise : float
        Root mean square of the filter's answer where there are no spots.
    settings : DetectionSettings
        With the radii that were used.
    other_sign : bool
        Whether dark spots stand out more where bright ones are looked for, or bright ones instead of dark.
    """

    position: NDArray[np.float64]
    quality: NDArray[np.float64]
    automatic: float
    noise: float
    settings: DetectionSettings
    other_sign: bool = False

    @property
    def threshold(self) -> float:
        """The threshold of the settings, or the automatic one."""
        return self.automatic if self.settings.threshold is None else self.settings.threshold

    def count_above(self, threshold: ArrayLike) -> NDArray[np.int64]:
        """How many spots have more quality than each threshold; shaped like them."""
        return len(self.quality) - np.searchsorted(self.quality[::-1], threshold, side="right")

    def thresholds(self) -> NDArray[np.float64]:
        """(16,) or fewer: thresholds to choose from, evenly spaced in their logarithm, rising.

        They reach from the noise to the best spot, and `threshold` is one of them.
        """
        best = float(self.quality[0]) if len(self.quality) else 1.0
        low = max(min(3 * self.noise, self.threshold), best / 1000)
        steps = np.geomspace(low, max(best, low), _STEPS)
        if self.threshold > 0:
            steps[np.argmin(np.abs(np.log(steps / self.threshold)))] = self.threshold
        return np.unique(steps)

    def table(self) -> str:
        """Count of spots against the threshold, as text; the threshold that counts is marked."""
        chosen, steps = self.threshold, self.thresholds()
        counts = self.count_above(steps)
        longest = np.log1p(max(int(counts.max()), 1))
        name = "automatic" if self.settings.threshold is None else "given"
        lines = ["threshold   spots"]
        for step, count in zip(steps.tolist(), counts.tolist(), strict=True):
            bar = "#" * round(_BAR * float(np.log1p(count) / longest))
            mark = f"  <- {name}" if step == chosen else ""
            lines.append(f"{step:9.4g} {count:7d}  {bar}{mark}")
        return "\n".join(lines)


def preview(image: NDArray, settings: DetectionSettings, *, first: NDArray | None = None) -> Preview:
    """Look for spots in one frame and leave the threshold open: `outbid detect --preview`, and forms.

    `detect` with any threshold finds in this frame exactly the spots of `preview` that exceed it. A form
    calls it once for a frame and radius, and again only where these change: the points that it shows while
    a threshold moves are ``position[:count_above(threshold)]``.

    Parameters
    ----------
    image : (Z, Y, X) array of real numbers
        Z is 1 in 2D.
    settings : DetectionSettings
        The threshold is not applied.
    first : (Z, Y, X) array, optional
        The movie's first frame, where it is another one: `detect` estimates the radius from it, unless
        nothing stands out there.

    Returns
    -------
    Preview

    Raises
    ------
    InputError
        If a frame is not 3-dimensional or holds no real numbers.

    Examples
    --------
    >>> y, x = np.ogrid[:40, :40]
    >>> bright, faint = (np.exp(-((y - c) ** 2 + (x - 12) ** 2) / 8) for c in (10, 30))
    >>> seen = preview(100 * bright[None] + 40 * faint, DetectionSettings(radius=3))
    >>> seen.count_above([10, 30, 90]).tolist(), seen.position[0].round(1).tolist()
    ([2, 1, 0], [0.0, 10.0, 12.0])
    """
    here = replace(settings, device="cpu")
    seen = checked(image, 0, here)
    if settings.radius is None:
        frames = [image] if first is None else [first, image]
        tried = (estimate_radius(checked(frame, 0, here), settings) for frame in frames)
        settings = next((found for found in tried if found.radius is not None), settings)
    other = other_sign_stands_out(seen, settings)
    if settings.radius is None:
        return Preview(np.empty((0, 3)), np.empty(0), 0.0, 0.0, settings, other)
    found = candidates(seen, settings, least=0.0)
    order = np.argsort(-found.quality, kind="stable")
    position, quality = found.position[order] * settings.spacing, found.quality[order]
    return Preview(position, quality, automatic_threshold(found), found.noise, settings, other)
