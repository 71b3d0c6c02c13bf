"""Remarks on settings of detection that hardly fit a movie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..errors import SettingsError
from ..formats.images.frames import Images
from ..formats.images.tiff import white_is_zero
from .jobs import DetectJob


def remarks_on_choices(job: DetectJob, movie: Images, source: str) -> Iterator[str]:
    """Sentences on settings that hardly fit the movie."""
    settings, path = job.settings, Path(source)
    if job.labels:
        inside = path / "labels"
        names = [one.name for one in sorted(inside.iterdir()) if one.is_dir()] if inside.is_dir() else []
        if names:
            yield f"{source} has label images of its own: give {inside / names[0]} with --labels."
        return
    is_tiff = path.suffix.lower() in (".tif", ".tiff") and path.is_file()
    if is_tiff and not settings.dark and white_is_zero(path):
        yield "The file says that white is zero: what is bright has low numbers. To find it: --dark."
    size = movie.spacing[2]
    widest = max(number * voxel for number, voxel in zip(movie.shape[1:], movie.spacing[1:], strict=True))
    if settings.radius is not None and not size / 2 <= settings.radius <= widest / 2:
        how = "smaller than half a voxel" if settings.radius < size else "larger than half of the image"
        said = (
            f"The radius of {settings.radius:g} {movie.unit} is {how}: a voxel is {size:g} wide, the image "
            f"{widest:g}. Is it in another unit?"
        )
        if settings.radius > widest:
            raise SettingsError(said)
        yield said
