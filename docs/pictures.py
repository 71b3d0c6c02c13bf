"""Pictures of the pages: ``python docs/pictures.py`` runs the pages' own commands and draws the results."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import blocks
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from outbid import Detections, Tracks, read_detections, read_tracks
from outbid.formats.images.opening import open_images
from outbid.viewers.judged import judge_links
from outbid.viewers.layers import COLOURS

HERE = Path(__file__).resolve().parent
IMAGES = HERE / "images"
SHOWN = 8
"""The frame of the movie that is shown."""
_SIZE = 420
"""Pixels of a side."""
_TAIL = 12
"""Frames of the past that are drawn of each track."""
_MILLISECONDS = 120
"""From frame to frame."""
_COLOURS = 64
"""Of the palette: with more, the file grows beyond 2 MB."""
_GREYS = 10
"""Levels of the image, for the same reason: its noise hardly compresses."""
_GOLDEN = 0.6180339887498949
"""Turn between the hues of consecutive tracks."""


def spots_panel(axes: Axes, folder: Path) -> None:
    """A frame, brightest along z, and what was detected in it."""
    _movie(axes, folder)
    seen = read_detections(folder / "spots.csv")
    _, y, x = seen.position[seen.frame == SHOWN].T
    axes.scatter(x, y, s=70, facecolors="none", edgecolors="#ffd33d", linewidths=0.9)
    axes.set_title(f"detect: {len(x)} spots in frame {SHOWN}")


def tracks_panel(axes: Axes, folder: Path) -> None:
    """All tracks, seen along z, each in a colour of its own."""
    tracks = read_tracks(folder / "tracks.csv")
    of_link = tracks.track_id[tracks.links[:, 0]]
    golden = (of_link * _GOLDEN) % 1
    axes.add_collection(
        LineCollection(_segments(tracks.detections, tracks.links), colors=colormaps["hsv"](golden))
    )
    _field(axes, folder)
    axes.set_facecolor("black")
    axes.set_title(f"track: {tracks.track_count} tracks")


def errors_panel(axes: Axes, folder: Path) -> None:
    """True, false and missed links, seen along z."""
    judged = judge_links(read_tracks(folder / "tracks.csv"), read_tracks(folder / "truth.csv"), gate=2.0)
    kinds = {
        "true": (judged.tracks, judged.right), "false": (judged.tracks, ~judged.right),
        "missed": (judged.truth, ~judged.found_again),
    }  # fmt: skip
    for kind, (tracks, chosen) in kinds.items():
        lines, wide = _segments(tracks.detections, tracks.links[chosen]), 0.7 if kind == "true" else 2
        label = f"{len(lines)} {kind}"
        axes.add_collection(LineCollection(lines, colors=COLOURS[kind], linewidths=wide, label=label))
    _field(axes, folder)
    axes.set_facecolor("black")
    axes.legend(loc="lower left", framealpha=0.8, fontsize="small")
    axes.set_title("score: links against the truth")


def _movie(axes: Axes, folder: Path) -> None:
    movie = open_images(folder / "movie.ome.tif")
    for number, frame in enumerate(movie.frames()):
        if number == SHOWN:
            _, y, x = np.multiply(frame.shape, movie.spacing)
            axes.imshow(frame.max(axis=0), cmap="gray", extent=(0, x, y, 0), interpolation="nearest")
    _field(axes, folder)


def _field(axes: Axes, folder: Path) -> None:
    """The same part of space in all panels."""
    seen = read_tracks(folder / "truth.csv").detections.position
    axes.set(xlim=(0, np.ceil(seen[:, 2].max())), ylim=(np.ceil(seen[:, 1].max()), 0), aspect="equal")
    axes.set(xlabel="x", ylabel="y")


def _segments(detections: Detections, links: NDArray[np.int64]) -> NDArray[np.float64]:
    """(E, 2, 2) x, y of the two ends of each link."""
    return detections.position[links][:, :, [2, 1]]


def save_small(figure: Figure, file: Path, dpi: int, colours: int = 256) -> None:
    """Save a figure with few colours, which keeps it small."""
    figure.savefig(file, dpi=dpi)
    with Image.open(file) as drawn:
        drawn.convert("RGB").quantize(colours).save(file, optimize=True)


def _of_tutorial() -> None:
    """The three panels, each by itself and all side by side."""
    panels = {"spots": spots_panel, "tracks": tracks_panel, "errors": errors_panel}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = (HERE / "tutorial.md").read_text("utf-8")
        blocks.run_blocks(blocks.blocks_of(page), folder)
        moving_picture(folder)
        for panel_name, panel in panels.items():
            figure = Figure((5, 5), layout="constrained")
            panel(figure.subplots(), folder)
            save_small(figure, IMAGES / f"{panel_name}.png", 110)
        figure = Figure((10, 3.75), layout="constrained")
        for axes, panel in zip(figure.subplots(1, 3), panels.values(), strict=True):
            panel(axes, folder)
            axes.set(xlabel="", ylabel="", xticks=[], yticks=[])
        save_small(figure, HERE / "tracks.png", 95)


def moving_picture(folder: Path) -> None:
    """The movie of the README, with the spots and the tails of their tracks."""
    movie, tracks = open_images(folder / "movie.ome.tif"), read_tracks(folder / "tracks.csv")
    frames = [image.max(axis=0).astype(np.float64) for image in movie.frames()]
    scale = _SIZE / (frames[0].shape[0] * movie.spacing[1])
    low, high = np.percentile(frames, [60, 99.8])
    drawn = [
        _picture(np.clip((frame - low) / (high - low), 0, 1), tracks, number, scale)
        for number, frame in enumerate(frames)
    ]
    palette = drawn[-1].quantize(_COLOURS)
    first, *others = (picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in drawn)
    options = {"append_images": others, "duration": _MILLISECONDS, "loop": 0, "optimize": True}
    first.save(HERE / "moving.gif", save_all=True, **options)


def _picture(grey: NDArray[np.float64], tracks: Tracks, frame: int, scale: float) -> Image.Image:
    """A frame, brightest along z, with its spots and the tails of their tracks."""
    image = Image.fromarray((np.round(grey * _GREYS) * (200 // _GREYS)).astype(np.uint8)).resize(
        (_SIZE, _SIZE), Image.Resampling.NEAREST
    )
    picture = image.convert("RGB")
    draw = ImageDraw.Draw(picture)
    seen = tracks.detections
    place = seen.position[:, [2, 1]] * scale
    start = seen.frame[tracks.links[:, 0]]
    end = seen.frame[tracks.links[:, 1]]
    for source, target in tracks.links[(end <= frame) & (start >= frame - _TAIL)].tolist():
        draw.line(
            [tuple(place[source]), tuple(place[target])], fill=_hue(int(tracks.track_id[target])), width=2
        )
    for row in range(*seen.rows_of(frame).indices(len(seen))):
        x, y = place[row]
        draw.ellipse([x - 6, y - 6, x + 6, y + 6], outline=_hue(int(tracks.track_id[row])), width=2)
    return picture


def _hue(track: int) -> str:
    return f"hsl({int(track * _GOLDEN % 1 * 24) * 15}, 90%, 60%)"


def _of_experiments() -> None:
    """The picture that the first block of the page draws."""
    page = (HERE / "explanation" / "experiments.md").read_text("utf-8")
    made = [block for block in blocks.blocks_of(page) if "-o found" in block.code][:1]
    with tempfile.TemporaryDirectory() as name:
        blocks.run_blocks(made, Path(name))
        shutil.copyfile(Path(name) / "found" / "kappa.png", IMAGES / "kappa.png")


if __name__ == "__main__":
    _of_tutorial()
    _of_experiments()
