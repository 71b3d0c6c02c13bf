"""Whether settings of detection suit a movie: sentences on those that hardly do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..formats.images.frames import Images
from ..settings.detection import DetectionSettings, remark_on_radius


def remarks_on(movie: Images, settings: DetectionSettings, *, labels: bool = False) -> Iterator[str]:
    """Sentences on settings that hardly fit the movie; `labels`: whether it is of label images.

    Raises
    ------
    SettingsError
        If no spot of that radius fits into the movie.
    """
    if labels:
        inside = Path(movie.name) / "labels"
        names = [one.name for one in sorted(inside.iterdir()) if one.is_dir()] if inside.is_dir() else []
        if names:
            yield f"{movie.name} has label images of its own: give {inside / names[0]} with --labels."
        return
    if movie.white_is_zero and not settings.dark:
        yield (
            "The file says that white is zero: what is bright has low numbers. To find it: --dark (Python: "
            "dark=True)."
        )
    yield from remark_on_radius(settings.radius, movie.shape, movie.spacing, movie.calibration.symbol)


def radius_said(settings: DetectionSettings, movie: Images) -> str:
    """The radii of spots that were used, in the unit of the movie and in voxels, as a sentence."""
    if settings.radius is None:
        return "Nothing stands out of the noise at any radius. To look for one: --radius R."
    along = "" if settings.radius_z is None else f", along z {settings.radius_z:.3g}"
    what = ", of blobs without a common profile" if settings.bodies else ""
    voxels = "" if movie.unit == "pixel" else f" ({settings.radius / movie.spacing[2]:.3g} px)"
    return f"radius {settings.radius:.3g} {movie.calibration.symbol}{voxels}{along}{what}."
