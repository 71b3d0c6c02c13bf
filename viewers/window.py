"""Show a movie and layers in a napari window, or save pictures of it."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path

import napari
import numpy as np
from napari.layers import Layer as NapariLayer
from napari.layers import Tracks as NapariTracks

from outbid.errors import ResourceError
from outbid.formats.images.frames import Images
from outbid.work.jobs import Opening

from .forms.napari_layers import show
from .layers import AXES, Layer
from .scene import Grid, View, contrast_of

_LESS = 5
"""Prior: nice value of a viewer of what is recorded, so that watching comes first where cores are few."""
_SIDE, _MARGIN = 1200, 0.04  # of pictures: pixels of the longer side, share of it that is left free


def movie_layer(movie: Images, grid: Grid, name: str) -> NapariLayer:
    """A napari layer with the frames of the movie, which are read when they are viewed.

    Parameters
    ----------
    movie : Images
    grid : Grid
        Its voxels.
    name : str
    """
    frames = movie.lazy()
    transform = Layer(
        "image", name, np.empty((0, 4)), {}, (1, *grid.spacing), grid.unit, origin=(0, *grid.origin)
    ).as_tuple()[1]
    limits = contrast_of(frames[len(frames) // 2].max(axis=0).compute())
    look = {
        "contrast_limits": limits, "colormap": "gray", "rgb": False, "multiscale": False, "rendering": "mip",
    }  # fmt: skip
    return NapariLayer.create(frames, transform | look, "image")


def open_window(title: str, scene: View, movie: tuple[str, Images] | None = None) -> napari.Viewer:
    """Open a window with a movie and layers.

    Parameters
    ----------
    title : str
    scene : View
    movie : (str, Images), optional
        And what it is called.
    """
    viewer = napari.Viewer(title=title)
    if movie is not None:
        viewer.add_layer(movie_layer(movie[1], scene.grid, movie[0]))
    for layer in scene.layers:
        if len(layer.data):
            show(viewer, layer).visible = layer.name not in scene.hidden
    viewer.dims.axis_labels = AXES
    viewer.dims.ndisplay = 3 if viewer.dims.ndim == 4 and viewer.dims.nsteps[1] > 1 else 2
    viewer.canvas.overlays.scale_bar.visible = True
    viewer.reset_view()
    return viewer


def png_of(viewer: napari.Viewer, scene: View, frame: int | None = None) -> bytes:
    """A screenshot of the whole scene at one frame as PNG, longer side 1200, with frame and legend.

    Parameters
    ----------
    viewer : napari.Viewer
        Of a window that is open.
    scene : View
        What it shows.
    frame : int, optional
        Default: the last one, with all tracks up to then.

    Raises
    ------
    ResourceError
        If nothing is drawn, since OpenGL does not work.
    """
    from PIL import Image

    shown = int(viewer.dims.range[0].stop) if frame is None else frame
    viewer.dims.set_point(0, shown)
    for layer in viewer.layers:
        if isinstance(layer, NapariTracks) and frame is None:
            layer.tail_length = max(layer.tail_length, int(viewer.dims.nsteps[0]))
    overlay = viewer.canvas.overlays.text
    overlay.text, overlay.visible = f"frame {shown}   {scene.legend}", True
    overlay.position, overlay.font_size = "top_left", 12
    extent = np.ptp(viewer.layers.extent.world, axis=0)[-2:] + viewer.layers.extent.step[-2:]
    height, width = np.clip(extent / extent.max(), 0.4, 1)
    viewer.scene.camera.zoom = _SIDE * (1 - 2 * _MARGIN) / extent.max()
    size = int(_SIDE * height), int(_SIDE * width)
    seen = viewer.screenshot(size=size, scale=1, canvas_only=True, flash=False)[..., :3]
    if (seen == seen[0, 0]).all():
        raise ResourceError(
            "The picture is blank: OpenGL does not draw here. Install a driver: "
            "apt-get install libgl1-mesa-dri."
        )
    content = io.BytesIO()
    Image.fromarray(seen).save(content, "PNG")
    return content.getvalue()


def show_until_closed() -> None:
    """Show the open windows until the user closes the last one."""
    napari.run()


def show_live(source: str, output: Path, opening: Opening) -> None:
    """Show what a watch follows in a window, until the user closes it."""
    with suppress(AttributeError):  # as on Windows
        os.nice(_LESS)
    viewer = napari.Viewer(title=source or output.name)
    _, form = viewer.window.add_plugin_dock_widget("outbid", "Live")
    form.follow(source, output, opening)
    show_until_closed()
