"""Second readers of images: Pillow for TIFF, libpng by way of imagecodecs for PNG."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageSequence

from .cases import Seed
from .second import Broken, Found, Unsure

_PLAIN = {262: (1,), 274: (1,), 266: (1,), 284: (1,), 277: (1,), 339: (1, 3, (1,), (3,))}
"""Tags of TIFF, and the values for which both readers mean the same: grey, upright, one unsigned sample."""
_EXTREMES, _SHORT = (280, 281), 3
"""Tags of the least and largest value; if their type is another, Pillow shows the page before once more."""


def pages(file: Path) -> np.ndarray:
    """All pages of a TIFF, one after the other; a single one as a plane."""
    if file.read_bytes()[:2] not in (b"II", b"MM"):
        raise Broken("no TIFF")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(file, formats=["TIFF"]) as image:
                description = str(image.tag_v2.get(270))  # type: ignore[attr-defined]
                found = [_page(one) for one in ImageSequence.Iterator(image)]
    except Unsure:
        raise
    except Exception:
        raise Unsure("Pillow cannot read it") from None
    declared = _declared(description)
    if declared * found[0].nbytes > file.stat().st_size:
        raise Broken(f"{declared} planes are declared, {len(found)} are there")
    if declared > len(found) or len({(page.shape, page.dtype) for page in found}) > 1:
        raise Unsure("planes without pages of their own, or of different sizes")
    return found[0] if len(found) == 1 else np.stack(found)


def _declared(text: str) -> int:
    """How many planes ImageJ, tifffile or OME software declares."""
    if text.startswith("ImageJ=") and (images := re.search(r"\bimages=(\d+)", text)):
        return int(images[1])
    if shape := re.search(r'"shape": \[([\d, ]+)\]', text):
        return math.prod([int(n) for n in shape[1].split(",")[:-2]])
    pixels = re.search(r"<Pixels[^>]*>", text)
    return math.prod(int(n) for n in re.findall(r'\bSize[TZC]="(\d+)"', pixels[0])) if pixels else 0


def _page(image: Image.Image) -> np.ndarray:
    tags = image.tag_v2  # type: ignore[attr-defined]
    for tag, plain in _PLAIN.items():
        if tag in tags and tags[tag] not in plain:
            raise Unsure(f"tag {tag} is {tags[tag]}")
    if any(tags.tagtype.get(tag, _SHORT) != _SHORT for tag in _EXTREMES):
        raise Unsure("extremes of another type")
    if image.mode not in ("L", "I;16", "I;16B", "F", "I"):
        raise Unsure(f"mode {image.mode}")
    values = np.array(image)
    # Pillow takes 32 bits as signed, where no tag says so.
    return values.view(np.uint32) if values.dtype == np.int32 else values


def _in_order(path: Path, suffix: str) -> list[Path]:
    """The file, or those of a folder by the numbers in their names; one that is missing is a frame."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob(f"*.{suffix}"), key=lambda file: [int(n) for n in re.findall(r"\d+", file.name)])
    numbers = [int(number) for file in files for number in re.findall(r"\d+", file.stem)[-1:]]
    if len(set(np.diff(numbers).tolist())) > 1:
        raise Unsure("missing frames")
    return files


def _together(stacks: list[np.ndarray]) -> Found:
    if not stacks or len({(stack.shape, stack.dtype) for stack in stacks}) > 1:
        raise Unsure("sizes that differ")
    return image_as_found(np.concatenate(stacks))


def image_as_found(planes: np.ndarray) -> Found:
    """(n, y, x) planes as what can be compared."""
    flat = np.ascontiguousarray(planes.reshape(planes.shape[0], -1), dtype=float)
    flat = np.where(np.isnan(flat), 1.2345e308, flat)
    return Found(((*map(float, planes.shape), 0.0), *map(tuple, flat.tolist())), None)


def read_tiff(path: Path, seed: Seed) -> Found:
    """The planes of all files."""
    if not seed.hint.get("judged"):
        raise Unsure("channels, colours or several images")
    stacks = map(pages, _in_order(path, "tif"))
    return _together([stack if stack.ndim == 3 else stack[None] for stack in stacks])


def read_png(path: Path, seed: Seed) -> Found:
    """The pictures of all files, colours as their mean."""
    import imagecodecs

    try:
        shots = [imagecodecs.png_decode(file.read_bytes()) for file in _in_order(path, "png")]
    except Exception:
        raise Unsure("libpng cannot read it") from None
    if any(shot.dtype != np.uint8 and shot.ndim > 2 for shot in shots):
        raise Unsure("deep colours")
    return _together([_grey(shot)[None] for shot in shots])


def _grey(shot: np.ndarray) -> np.ndarray:
    if shot.ndim == 2 or shot.shape[-1] < 3:
        return shot.reshape(*shot.shape[:2], -1)[..., 0]
    return shot[..., :3].mean(axis=-1, dtype=np.float32)
