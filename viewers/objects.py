"""A label image with track numbers; each frame is computed when it is viewed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from outbid.edit.relabel import relabelled_frame
from outbid.particles.tracks import Tracks


def labels_by_track(data: Any, tracks: Tracks) -> Any:
    """Label images in which every object has the number of its track, plus 1.

    Parameters
    ----------
    data : (T, Z, Y, X) or (T, Y, X) array-like of integers
        Of a labels layer.
    tracks : Tracks
        Of its objects, in voxels.

    Returns
    -------
    dask array of uint32
        As large as `data`; a frame is computed when it is read.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]], features={"label": [7, 3]})
    >>> image = np.array([[[7, 7, 0]], [[0, 3, 5]]])
    >>> labels_by_track(image, Tracks(seen, np.array([[0, 1]]))).compute().tolist()
    [[[1, 1, 0]], [[0, 1, 0]]]
    """
    import dask.array as da

    def made(block: NDArray, block_info: Any = None) -> NDArray[np.uint32]:
        frame = block_info[0]["array-location"][0][0]
        whole = block[0] if block.ndim == 4 else block
        return relabelled_frame(whole, frame, tracks).reshape(block.shape)

    lazy: Any = da  # dask has few types
    chunks = (1, *data.shape[1:])
    given: Any = data if isinstance(data, da.Array) else lazy.from_array(data)
    images = given.rechunk(chunks)
    return lazy.map_blocks(made, images, dtype=np.uint32, meta=np.empty((0,) * images.ndim, np.uint32))
