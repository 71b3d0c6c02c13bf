"""TIFF files that grow: a look and a frame read the pages that are new, however many there were before."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from outbid import InputError
from outbid.formats.images import tiff_pages
from outbid.watching.sources import NotYet
from outbid.watching.tiff import GrowingTiff
from outbid.work.jobs import Opening

FRAMES, DEEP, SIDE = 60, 3, 16
IMAGES = np.random.default_rng(0).integers(0, 4000, (FRAMES, DEEP, SIDE, SIDE)).astype(np.uint16)
Write = Callable[[Path], Iterator[Path]]


def planes(folder: Path) -> Iterator[Path]:
    """BigTIFF without a header: a page a frame."""
    with tifffile.TiffWriter(folder / "a.tif", bigtiff=True) as file:
        for image in IMAGES:
            file.write(image[0], contiguous=False, metadata=None)
            file.filehandle.flush()
            yield folder / "a.tif"


def volumes(folder: Path) -> Iterator[Path]:
    """Stacks as tifffile writes them one by one, compressed."""
    with tifffile.TiffWriter(folder / "a.tif", bigtiff=True) as file:
        for image in IMAGES:
            file.write(
                image,
                contiguous=False,
                compression="zlib",
                photometric="minisblack",
                metadata={"axes": "ZYX"},
            )
            file.filehandle.flush()
            yield folder / "a.tif"


def imagej(folder: Path) -> Iterator[Path]:
    """Planes one by one, with ImageJ's header in the first, which declares them all."""
    header = f"ImageJ=1.54f\nimages={FRAMES * DEEP}\nslices={DEEP}\nframes={FRAMES}\nhyperstack=true\n"
    with tifffile.TiffWriter(folder / "a.tif") as file:
        for k, image in enumerate(IMAGES):
            for z, plane in enumerate(image):
                text = header if k == z == 0 else None
                file.write(plane, contiguous=False, description=text, metadata=None)
            file.filehandle.flush()
            yield folder / "a.tif"


def several(folder: Path) -> Iterator[Path]:
    """OME-TIFF in two files, whose planes the header states, in an order of its own."""
    names, half = ("a_0.ome.tif", "a_1.ome.tif"), FRAMES // 2
    stated = "".join(
        f'<TiffData FirstT="{t}" FirstZ="{z}" IFD="{t % half * DEEP + DEEP - 1 - z}" PlaneCount="1">'
        f'<UUID FileName="{names[t // half]}">urn:uuid:0000000{t // half}-0000-0000-0000-000000000000</UUID>'
        "</TiffData>"
        for t in range(FRAMES)
        for z in range(DEEP)
    )
    header = (
        '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" '
        'UUID="urn:uuid:0000000{}-0000-0000-0000-000000000000"><Image ID="Image:0"><Pixels ID="Pixels:0" '
        f'DimensionOrder="XYZCT" Type="uint16" SizeX="{SIDE}" SizeY="{SIDE}" SizeZ="{DEEP}" SizeC="1" '
        f'SizeT="{FRAMES}"><Channel ID="Channel:0:0" SamplesPerPixel="1"/>{stated}</Pixels></Image></OME>'
    )
    for number, name in enumerate(names):
        with tifffile.TiffWriter(folder / name) as file:
            for k in range(half):
                for z in reversed(range(DEEP)):
                    text = header.format(number) if k == 0 and z == DEEP - 1 else None
                    image = IMAGES[number * half + k, z]
                    file.write(image, contiguous=False, description=text, metadata=None)
                file.filehandle.flush()
                yield folder / names[0]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows by an entry for each page that is read."""
    seen: list[str] = []
    listed, opened = tiff_pages.Pages._page, tifffile.TiffPage.__init__

    def in_list(self, *given):
        seen.append("listed")
        return listed(self, *given)

    def page(self, *given, **named):
        seen.append("opened")
        opened(self, *given, **named)

    monkeypatch.setattr(tiff_pages.Pages, "_page", in_list)
    monkeypatch.setattr(tifffile.TiffPage, "__init__", page)
    return seen


@pytest.mark.smoke
@pytest.mark.parametrize("write", [planes, volumes, imagej, several])
def test_what_a_look_reads_does_not_grow_with_the_frames(
    tmp_path: Path, counted: list[str], write: Write
) -> None:
    source, pages, last = None, list[int](), -1
    for k, path in enumerate(write(tmp_path)):
        source = source or GrowingTiff(str(path), Opening())
        counted.clear()
        for number in [*source.poll(), *(source.poll(ended=True) if k == FRAMES - 1 else ())]:
            assert number == last + 1
            last = number
            found = source.read(number)
            assert np.array_equal(found, IMAGES[number] if write is not planes else IMAGES[number, :1])
        pages.append(len(counted))
    assert last == FRAMES - 1
    assert max(pages[FRAMES // 2 + 2 : -1]) <= max(pages[3 : FRAMES // 2])  # the last look takes two frames
    assert max(pages[3:-1]) <= 3 * (DEEP + 2)


def test_another_movie_in_the_same_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it has become longer than the first one before it is looked at."""
    source = GrowingTiff(str(tmp_path / "a.tif"), Opening())
    for k, _ in enumerate(planes(tmp_path)):
        source.poll()
        if k == 5:
            break
    monkeypatch.setitem(globals(), "IMAGES", IMAGES[::-1])
    for k, _ in enumerate(planes(tmp_path)):
        if k == 8:
            with pytest.raises(InputError, match="its first frame was written again"):
                source.poll()
            break


def test_a_page_that_is_not_whole_comes_later(tmp_path: Path) -> None:
    content: NDArray[np.uint8] = np.empty(0, np.uint8)
    for k, path in enumerate(planes(tmp_path)):
        content, before = np.fromfile(path, np.uint8), content
        if k == 5:
            break
    path = tmp_path / "b.tif"
    source = GrowingTiff(str(path), Opening())
    before.tofile(path)
    assert [*source.poll(), *source.poll()] == [0, 1, 2, 3, 4]
    # The link to the new page is there, and half of the page.
    for end in ((len(before) + len(content)) // 2, len(content) - 100):
        content[:end].tofile(path)
        assert {*source.poll(), *source.poll()} <= {5}
        with pytest.raises((NotYet, IndexError)):
            source.read(5)
    content.tofile(path)
    source.poll()
    assert np.array_equal(source.read(5)[0], IMAGES[5, 0])
    before.tofile(path)
    with pytest.raises(InputError, match="shorter than it was"):
        source.poll()
