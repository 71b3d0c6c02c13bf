"""The gallery: ``python docs/gallery.py`` tracks real movies, draws them and writes docs/gallery.md.

The movies are in the folder OUTBID_DATA, by default ../shared/data beside the checkout; their licences allow
pictures, with the credit that stands below each.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import blocks
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from pictures import save_small

import outbid
from outbid.formats.images.opening import open_images

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("OUTBID_DATA", HERE.parents[1] / "shared" / "data"))
FOLDER = HERE / "gallery"
sys.path.append(str(HERE.parent / "tests" / "bench"))


class Shown(NamedTuple):
    """A movie of the gallery: its files in `DATA`, of images if they are detected, and the options used."""

    name: str
    title: str
    about: str
    file: str
    track: str
    credit: str
    detect: str = ""
    truth: bool = False


MOVIES = (
    Shown(
        "embryo", "Nuclei of a C. elegans embryo",
        "Nuclei divide repeatedly. Outbid finds divisions from positions alone.",
        "celegans/L2.csv", "", "MIT, Yuntian Gan, LIVE_tools", truth=True,
    ),
    Shown(
        "nuclei", "Nuclei of a Drosophila embryo, light sheet",
        "The movie consists of image stacks; their voxels are five times longer along z.",
        "drosophila_nuclei/tif", "", "Janelia Open-Source Software licence, HHMI", detect="--spacing 5 1 1",
    ),
    Shown(
        "bacteria", "E. coli on an agar pad",
        "Positions come from TrackMate's XML. Cells grow and divide.",
        "formats/pycellin/Ecoli_growth_on_agar_pad_with_gaps.xml", "",
        "BSD-3-Clause, Institut Pasteur, pycellin",
    ),
    Shown(
        "colloids", "Colloids: latex spheres of 1 µm in water",
        "One camera recorded the movie. The spheres diffuse.",
        "colloids_png", "--no-divisions", "BSD-3-Clause or CC-BY-3.0, trackpy contributors",
        detect="--dark",
    ),
    Shown(
        "tcells", "T cells among organoids",
        "Positions come from Imaris, in micrometres. Some cells are missing in some frames.",
        "tcells_imaris/tidy.csv", "--no-divisions", "Apache-2.0, BEHAV3D",
    ),
    Shown(
        "turbulence", "Tracers in turbulent convection",
        "Particles enter and leave a cube. Neighbours move in similar directions.",
        "turbulence/subcube.csv", "--no-divisions", "MIT, Robin Barta, proPTV", truth=True,
    ),
)  # fmt: skip


def main() -> None:
    """Track and draw each movie, and write the page."""
    from benchmarks import measure

    FOLDER.mkdir(exist_ok=True)
    parts = [_section(movie) for movie in MOVIES]
    origin = "Made by `python docs/gallery.py`, commit {commit:.10}, {date}.".format_map(measure.stated())
    head = (
        "# Gallery: real movies, from raw file to figure\n\nEach picture shows all tracks of a movie, "
        "projected along z; each track has one colour. If the true tracks are known, a score compares the "
        "tracks with them. Linking does not use the true tracks.\n"
    )
    (HERE / "gallery.md").write_text("\n".join([head, *parts, origin]) + "\n", "utf-8")


def _section(movie: Shown) -> str:
    source = DATA / movie.file
    lines = [f"outbid detect {source.name}/ -o spots.csv {movie.detect}"] if movie.detect else []
    table = "spots.csv" if movie.detect else source.name
    lines += [f"outbid track {table} -o tracks.csv {movie.track}".rstrip(), "outbid report tracks.csv"]
    code = "\n".join(lines)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / source.name).symlink_to(source, source.is_dir())
        (printed,) = blocks.run_blocks([blocks.Block("sh", code, 1, 1)], folder)
        tracks = outbid.read_tracks(folder / "tracks.csv")
    _draw(movie, tracks, source if movie.detect else None)
    (said,) = re.findall(r"^[\d,]+ tracks from .*", printed, re.MULTILINE)
    if movie.truth:
        score = outbid.score(tracks, source, families=["links"])["link_f1"]
        said += f" Link F1 against the truth: {score:.4f}."
    return (
        f"## {movie.title}\n\n{movie.about}\n\n![{movie.title}](gallery/{movie.name}.png)\n\n"
        f"```console\n{code}\n```\n\n{said}\n\nData: {movie.credit}.\n"
    )


def _draw(movie: Shown, tracks: outbid.Tracks, images: Path | None) -> None:
    """All tracks along z, on the brightest projection of the last frame where there are images."""
    figure = Figure((5.6, 4.6), layout="constrained")
    axes = figure.subplots()
    place = tracks.detections.position
    low, high = place.min(axis=0), place.max(axis=0)
    if images is not None:
        given = re.search(r"--spacing (\S+) (\S+) (\S+)", movie.detect)
        opened = open_images(images, spacing=tuple(map(float, given.groups())) if given else None)
        (frame,) = opened.frames([opened.frame_count - 1])
        _, height, width = np.multiply(frame.shape, opened.spacing)
        axes.imshow(frame.max(axis=0), cmap="gray", extent=(0, width, height, 0))
    every = -(-len(tracks.links) // 20_000)
    kept = tracks.links[tracks.track_id[tracks.links[:, 1]] % every == 0]
    hue = tracks.track_id[kept[:, 1]] * 0.6180339887 % 1
    axes.add_collection(LineCollection(list(place[kept][..., [2, 1]]), array=hue, cmap="hsv", linewidths=0.9))
    axes.set(xlim=(low[2], high[2]), ylim=(high[1], low[1]), aspect="equal", facecolor="black")
    axes.set(xlabel=f"x ({tracks.detections.unit})", ylabel="y")
    save_small(figure, FOLDER / f"{movie.name}.png", 100, 128)


if __name__ == "__main__":
    main()
