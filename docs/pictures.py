"""Pictures of the pages, drawn by the build from files that the page's own blocks have written.

``python docs/pictures.py`` runs the tutorial and renews docs/tracks.png, the picture of the README.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import blocks
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from outbid import Detections, read_detections, read_tracks
from outbid.images import open_images
from outbid.viewers.judged import judge_links
from outbid.viewers.layers import COLOURS

HERE = Path(__file__).resolve().parent
SHOWN = 8
"""The frame of the movie that is shown."""


def draw(page: str, folder: Path) -> None:
    """The pictures of a page, into the folder where its blocks ran; most pages have none."""
    if page != "tutorial":
        return
    for name, panel in (("spots", spots_panel), ("tracks", tracks_panel), ("errors", errors_panel)):
        figure = Figure((5, 5), layout="constrained")
        panel(figure.subplots(), folder)
        figure.savefig(folder / f"{name}.png", dpi=110)


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
    golden = (of_link * 0.618034) % 1
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
        "true": (judged.tracks, judged.right),
        "false": (judged.tracks, ~judged.right),
        "missed": (judged.truth, ~judged.found_again),
    }
    for kind, (tracks, chosen) in kinds.items():
        links = tracks.links[chosen]
        axes.add_collection(
            LineCollection(
                _segments(tracks.detections, links),
                colors=COLOURS[kind],
                linewidths=0.7 if kind == "true" else 2,
                label=f"{len(links)} {kind}",
            )
        )
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


def _for_readme() -> None:
    """The three panels side by side."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = (HERE / "tutorial.md").read_text("utf-8")
        blocks.run_blocks(blocks.blocks_of(page), folder)
        figure = Figure((10, 3.75), layout="constrained")
        for axes, panel in zip(figure.subplots(1, 3), (spots_panel, tracks_panel, errors_panel), strict=True):
            panel(axes, folder)
            axes.set(xlabel="", ylabel="", xticks=[], yticks=[])
        figure.savefig(folder / "tracks.png", dpi=95)
        with Image.open(folder / "tracks.png") as drawn:
            drawn.convert("RGB").quantize(256).save(HERE / "tracks.png", optimize=True)


if __name__ == "__main__":
    _for_readme()
