"""Settings of `detect`: each is declared once, as a field, and validated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import SettingsError
from .declare import DEVICES, Setting, check_values, declare, documented


@documented
@dataclass(frozen=True)
class DetectionSettings:
    """Settings of detection; values that are None are learned from the images.

    Parameters
    ----------
    {settings}

    Raises
    ------
    SettingsError
        If a value is not finite or out of range, if two settings exclude each other, or if the device is
        unknown.
    """

    radius: float | None = declare(None, Setting(
        "Radius of a spot in the plane, in the unit of the voxel size.",
        "√d times the standard deviation of a Gaussian spot in d dimensions.",
        automatic="measured", least=0, above=True, unit="length", row="radius", further=False, metavar="R",
    ))  # fmt: skip
    radius_z: float | None = declare(None, Setting(
        "Radius along z.",
        automatic="measured", least=0, above=True, unit="length", row="radius along z", further=False,
        metavar="R",
    ))  # fmt: skip
    threshold: float | None = declare(None, Setting(
        "Least quality of a spot, in standard deviations of the noise; without a threshold, spots are chosen "
        "to maximise the expected Jaccard index.",
        automatic="automatic, in each frame", row="threshold", further=False, metavar="Q",
    ))  # fmt: skip
    spacing: tuple[float, float, float] = declare((1.0, 1.0, 1.0), Setting(
        "Size of a voxel along z, y, x.",
        least=0, above=True, row="voxel z, y, x", further=False, metavar="Z Y X",
    ))  # fmt: skip
    dark: bool = declare(False, Setting(
        "Spots are dark on a bright background.", row="spots|dark on a bright background"
    ))  # fmt: skip
    device: str = declare("auto", Setting(
        "Where to filter; auto uses a GPU if there is one and the movie is large enough.",
        choices=DEVICES, row="device",
    ))  # fmt: skip
    fdr: float | None = declare(None, Setting(
        "Largest share of false spots, from 0 to 1, instead of a `threshold`.",
        least=0, most=1, above=True, metavar="Q",
    ))  # fmt: skip
    gain: float | None = declare(None, Setting(
        "Grey values per photon.", automatic="the noise is measured", least=0, above=True, metavar="G"
    ))  # fmt: skip
    offset: float | None = declare(None, Setting("Grey value without light, with `gain`.", metavar="G"))
    read_noise: float | None = declare(None, Setting(
        "Standard deviation of the read noise in grey values, with `gain`.", least=0, metavar="G"
    ))  # fmt: skip
    bodies: bool | None = declare(None, Setting(
        "Find blobs without a common profile, such as nuclei.", automatic="by which explains the movie better"
    ))  # fmt: skip

    def __post_init__(self) -> None:
        check_values(self)
        for name in ("threshold", "offset"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise SettingsError(f"{name} is {value}; it must be a number.")
        if self.radius_z is not None and self.radius is None:
            raise SettingsError("radius_z is given without radius. Give both, or omit both to measure them.")
        if self.fdr is not None and self.threshold is not None:
            raise SettingsError("threshold and fdr exclude each other. Omit one of the two.")
        if self.gain is None and (self.offset is not None or self.read_noise is not None):
            raise SettingsError(
                "offset and read_noise need gain. Give it, or omit all three to measure the noise."
            )


def remark_on_radius(
    radius: float | None, shape: Sequence[int], spacing: Sequence[float], unit: str = ""
) -> list[str]:
    """A sentence on a radius that is below half a voxel or above half of the image: is it in another unit?

    Parameters
    ----------
    radius : float or None
    shape, spacing : sequences of 3
        Voxels of a frame along z, y, x, and the size of one.
    unit : str
        Of the radius, for the sentence.

    Raises
    ------
    SettingsError
        If the radius is larger than the image.

    Examples
    --------
    >>> remark_on_radius(0.2, (1, 64, 64), (1, 1, 1), "px")
    ['The radius of 0.2 px is smaller than half a voxel: a voxel is 1 wide, the image 64. Is it in another \
unit?']
    >>> remark_on_radius(3.0, (1, 64, 64), (1, 1, 1))
    []
    """
    size = spacing[2]
    widest = max(number * voxel for number, voxel in zip(shape[1:], spacing[1:], strict=True))
    if radius is None or size / 2 <= radius <= widest / 2:
        return []
    how = "smaller than half a voxel" if radius < size else "larger than half of the image"
    what = f"{radius:g} {unit}".strip()
    sizes = f"a voxel is {size:g} wide, the image {widest:g}"
    said = f"The radius of {what} is {how}: {sizes}. Is it in another unit?"
    if radius > widest:
        raise SettingsError(said)
    return [said]
