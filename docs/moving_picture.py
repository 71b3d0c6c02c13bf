"""The moving picture of the README: ``python docs/moving_picture.py`` draws a movie, its spots and tracks.

The movie, the spots and the tracks are those of the tutorial, made by the commands that stand there.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import blocks
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from outbid import Tracks, read_tracks
from outbid.images import open_images

HERE = Path(__file__).resolve().parent
PICTURE = HERE / "moving.gif"
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


def main() -> None:
    """Run the commands of the tutorial up to the tracks, and draw each frame."""
    page = (HERE / "tutorial.md").read_text("utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = [block for block in blocks.blocks_of(page) if block.language == "sh"]
        until = next(number for number, block in enumerate(made) if "outbid track" in block.code)
        blocks.run_blocks(made[: until + 1], folder)
        movie = open_images(folder / "movie.ome.tif")
        frames = [image.max(axis=0).astype(np.float64) for image in movie.frames()]
        tracks = read_tracks(folder / "tracks.csv")
        scale = _SIZE / (frames[0].shape[0] * movie.spacing[1])
        low, high = np.percentile(frames, [60, 99.8])
        drawn = [
            _picture(np.clip((frame - low) / (high - low), 0, 1), tracks, number, scale)
            for number, frame in enumerate(frames)
        ]
    palette = drawn[-1].quantize(_COLOURS)
    kept = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in drawn]
    kept[0].save(
        PICTURE, save_all=True, append_images=kept[1:], duration=_MILLISECONDS, loop=0, optimize=True
    )


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


if __name__ == "__main__":
    main()
