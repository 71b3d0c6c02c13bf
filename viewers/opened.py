"""Open files to be viewed; movies, points and tracks are distinguished by their content."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path

from outbid import formats
from outbid.errors import InputError
from outbid.formats.images.folders import SUFFIXES
from outbid.formats.images.frames import Images
from outbid.formats.images.opening import is_movie, open_images
from outbid.formats.tables.columns import AS_NAMED
from outbid.particles.detections import Detections
from outbid.particles.tracks import Tracks

from .scene import Grid, View, grid_of, on_grid, scene, share_outside

_LOG = logging.getLogger("outbid")


@dataclass(eq=False)
class Opened:
    """The content of the files, by file name.

    Parameters
    ----------
    movie : (str, Images) or None
    points : dict of str to Detections
    tracks : dict of str to Tracks
    truth : Tracks or None
    """

    movie: tuple[str, Images] | None = None
    points: dict[str, Detections] = field(default_factory=dict)
    tracks: dict[str, Tracks] = field(default_factory=dict)
    truth: Tracks | None = None


def open_files(
    files: Sequence[Path],
    truth: Path | None = None,
    *,
    spacing: tuple[float, float, float] | None = None,
    axes: str | None = None,
    channel: int = 0,
    scene: int | None = None,
    columns: Mapping[str, str] = AS_NAMED,
    truth_columns: Mapping[str, str] = AS_NAMED,
) -> Opened:
    """Open a movie, points and tracks in any order.

    Parameters
    ----------
    files : sequence of Path
        At most one movie, of any kind that `outbid.formats.images.opening.open_images` opens; and what
        `outbid.read_detections` and `read_tracks` read.
    truth : Path, optional
        Tracks.
    spacing, axes, channel, scene
        Of the movie, as for `outbid.formats.images.opening.open_images`.
    columns, truth_columns : mapping of str to str
        Of all tables among the files, and of the truth, as for `outbid.read_detections`.

    Raises
    ------
    InputError
        If a file cannot be read, or there are two movies.
    SettingsError
        If `axes`, `channel` or `scene` do not fit the movie.
    """
    found = Opened(truth=None if truth is None else formats.read_tracks(truth, columns=truth_columns))
    for file in files:
        name = _free_name(file, {*found.points, *found.tracks, *([found.movie[0]] if found.movie else [])})
        if _is_movie(file):
            if found.movie is not None:
                raise InputError(f"{found.movie[0]} and {file.name} are both movies. Give one of them.")
            found.movie = name, open_images(file, axes=axes, channel=channel, scene=scene, spacing=spacing)
            continue
        named = columns if formats.takes_columns(file, columns) else AS_NAMED
        if formats.holds_tracks(file, columns=named):
            found.tracks[name] = formats.read_tracks(file, columns=named)
        else:
            found.points[name] = formats.read_detections(file, columns=named)
    held = [*found.points.values(), *(of.detections for of in found.tracks.values())]
    if found.movie is None and not any(len(seen) for seen in held):
        raise InputError(f"There is nothing to show in {', '.join(map(str, files))}. Add a movie or tracks.")
    return found


def scene_of(
    found: Opened,
    *,
    spacing: tuple[float, float, float] | None = None,
    in_voxels: bool | None = None,
    gate: float | None = None,
    frames: tuple[int, int] | None = None,
    around: float = 0,
) -> View:
    """Transform all opened data to one grid of voxels.

    Parameters
    ----------
    found : Opened
    spacing : (float, float, float), optional
        Size of a voxel along z, y, x where there is no movie.
    in_voxels : bool, optional
        Whether all positions are in voxels. Default: as `on_grid` has it.
    gate, frames, around
        As for `scene`.

    Raises
    ------
    SettingsError
        If the units do not fit together; or as `scene`.
    """
    movie = found.movie[1] if found.movie else None
    truth = [found.truth] if found.truth is not None else []
    seen = [*found.points.values(), *(of.detections for of in [*found.tracks.values(), *truth])]
    grid = grid_of(movie, seen)
    if movie is None and spacing is not None:
        grid = Grid(spacing, grid.unit)

    def placed(name: str, of: Detections) -> Detections:
        on = on_grid(of, grid, in_voxels=in_voxels)
        if movie is not None and share_outside(on, movie) > 0.5:
            _LOG.warning(
                "Most positions of %s lie outside the movie. Check --spacing, and whether they are in voxels "
                "(--positions voxels).",
                name,
            )
        return on

    return scene(
        grid,
        {name: placed(name, of) for name, of in found.points.items()},
        {name: replace(of, detections=placed(name, of.detections)) for name, of in found.tracks.items()},
        None if found.truth is None
        else replace(found.truth, detections=placed("the truth", found.truth.detections)),
        gate=gate,
        frames=frames,
        around=around,
    )  # fmt: skip


def _is_movie(path: Path) -> bool:
    """Whether the path is an image, or a folder of images that is not a table format."""
    if is_movie(path):
        return True
    if not path.is_dir() or not any(file.suffix.lower() in SUFFIXES for file in path.iterdir()):
        return False
    return not any(path.glob("*_track.txt"))


def _free_name(path: Path, taken: set[str]) -> str:
    """The file's name, with a number if the name is taken."""
    names = chain([path.name or str(path)], (f"{path.name} ({number})" for number in count(2)))
    return next(name for name in names if name not in taken)
