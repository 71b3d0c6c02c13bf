"""One small movie in every container of images: written by the container's own library where that can write.

ND2 and LIF have no library that writes them: what is written here holds the parts that their readers need.
``three_frames.czi`` was written by Zeiss's own pylibCZIrw 6.1 from `VOXELS`, one plane after the other.
"""

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

SPACING = (2.0, 0.5, 0.5)
INTERVAL = 1.5
FRAMES, PLANES, ROWS, COLUMNS = 3, 6, 40, 48
CZI = Path(__file__).with_name("three_frames.czi")


def _voxels() -> NDArray[np.uint16]:
    """Seven spots that move, on a background of whole numbers, the same on every machine."""
    z, y, x = np.ogrid[:PLANES, :ROWS, :COLUMNS]
    images = []
    for t in range(FRAMES):
        image = 100 + (7919 * (z * 1920 + y * 48 + x + 31 * t)) % 13
        for k in range(7):
            centre = (1 + k % 4, 6 + 4 * k + t, 8 + (11 * k) % 34 + t)
            r2 = 4 * (z - centre[0]) ** 2 + (y - centre[1]) ** 2 + (x - centre[2]) ** 2
            image = image + np.maximum(0, 800 - 60 * r2)
        images.append(image)
    return np.array(images).astype(np.uint16)


VOXELS = _voxels()


def tiff(folder: Path) -> Path:
    """As Fiji writes it."""
    path = folder / "movie.tif"
    metadata = {"axes": "TZYX", "spacing": SPACING[0], "unit": "um", "finterval": INTERVAL}
    tifffile.imwrite(path, VOXELS, imagej=True, metadata=metadata, resolution=(2.0, 2.0))
    return path


def ome_zarr(folder: Path, version: str = "0.4", shards: bool = False) -> Path:
    """Two channels, of which the second is the movie, at two levels."""
    import zarr

    path = folder / f"movie{version}{'s' * shards}.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2 if version == "0.4" else 3)
    both = np.stack([VOXELS[::-1], VOXELS], axis=1)
    for level, step in enumerate((1, 2)):
        data = both[..., ::step, ::step]
        array = group.create_array(
            str(level), shape=data.shape, dtype=data.dtype, chunks=(1, 1, 3, 20, 16),
            shards=(1, 1, 6, 40, 48) if shards else None,
        )  # fmt: skip
        array[:] = data
    units = {"time": "second", "space": "micrometer"}
    kinds = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}
    axes = [
        {"name": name, "type": kind} | ({"unit": units[kind]} if kind in units else {})
        for name, kind in kinds.items()
    ]
    datasets = [
        {
            "path": str(level),
            "coordinateTransformations": [
                {"type": "scale", "scale": [1.0, 1.0, SPACING[0], SPACING[1] * step, SPACING[2] * step]}
            ],
        }
        for level, step in enumerate((1, 2))
    ]
    whole = [{"type": "scale", "scale": [INTERVAL, 1.0, 1.0, 1.0, 1.0]}]
    multiscale = {
        "version": version,
        "axes": axes,
        "datasets": datasets,
        "coordinateTransformations": whole,
        "name": "movie",
    }
    facts = {"multiscales": [multiscale], "omero": {"channels": [{"label": "red"}, {"label": "green"}]}}
    group.attrs.update(facts if version == "0.4" else {"ome": {"version": version, **facts}})
    return path


def plain_zarr(folder: Path) -> Path:
    """An array by itself, with named dimensions."""
    import zarr

    path = folder / "plain.zarr"
    names = ("t", "z", "y", "x")
    array = zarr.create_array(
        path, shape=VOXELS.shape, dtype=VOXELS.dtype, chunks=(1, 6, 40, 48), dimension_names=names
    )
    array[:] = VOXELS
    return path


def hdf5(folder: Path) -> Path:
    """With labels of dimensions, and the voxel as ImageJ writes it."""
    import h5py

    path = folder / "movie.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("images/raw", data=VOXELS, chunks=(1, 6, 40, 48), compression="gzip")
        for dimension, label in zip(data.dims, "tzyx", strict=True):
            dimension.label = label
        data.attrs["element_size_um"] = SPACING
        file["note"] = "no image"
    return path


def imaris(folder: Path) -> Path:
    """As Imaris lays it out: frames filled up to whole chunks, numbers as arrays of letters."""
    import h5py

    def letters(text: object) -> NDArray:
        return np.frombuffer(str(text).encode(), dtype="S1")

    path = folder / "movie.ims"
    with h5py.File(path, "w") as file:
        for level, step in enumerate((1, 2)):
            for t, frame in enumerate(VOXELS[..., ::step, ::step]):
                group = file.create_group(f"DataSet/ResolutionLevel {level}/TimePoint {t}/Channel 0")
                filled = np.zeros([8, 64, 64], np.uint16)
                filled[tuple(map(slice, frame.shape))] = frame
                group.create_dataset("Data", data=filled, chunks=(4, 32, 32), compression="gzip")
                for axis, size in zip("ZYX", frame.shape, strict=True):
                    group.attrs[f"ImageSize{axis}"] = letters(size)
        image = file.create_group("DataSetInfo/Image")
        for place, (size, voxel) in enumerate(zip(VOXELS.shape[:0:-1], SPACING[::-1], strict=True)):
            image.attrs[f"ExtMin{place}"] = letters(-3.5)
            image.attrs[f"ExtMax{place}"] = letters(size * voxel - 3.5)
        image.attrs["Unit"] = letters("um")
        times = file.create_group("DataSetInfo/TimeInfo")
        for t in range(FRAMES):
            times.attrs[f"TimePoint{t + 1}"] = letters(f"2024-05-23 23:59:{20 + t * INTERVAL:06.3f}")
        file.create_group("DataSetInfo/Channel 0").attrs["Name"] = letters("GFP")
    return path


def czi(folder: Path) -> Path:
    """A copy of the sample."""
    path = folder / "movie.czi"
    path.write_bytes(CZI.read_bytes())
    return path


def lif(folder: Path) -> Path:
    """An image of another kind, and the movie."""
    path = folder / "movie.lif"
    sizes = {"X": COLUMNS, "Y": ROWS, "Z": PLANES, "T": FRAMES}
    voxel = {"X": SPACING[2] * 1e-6, "Y": SPACING[1] * 1e-6, "Z": SPACING[0] * 1e-6, "T": INTERVAL}
    stride, described = 2, ""
    for number, (axis, size) in enumerate(sizes.items(), 1):
        described += (
            f'<DimensionDescription DimID="{number}" NumberOfElements="{size}" Origin="0" '
            f'Length="{voxel[axis] * (size - 1)!r}" Unit="{"s" if axis == "T" else "m"}" BitInc="0" '
            f'BytesInc="{stride}"/>'
        )
        stride *= size
    channel = (
        '<ChannelDescription DataType="0" ChannelTag="0" Resolution="16" NameOfMeasuredQuantity="" Min="0" '
        'Max="65535" Unit="" LUTName="Green" IsLUTInverted="0" BytesInc="0" BitInc="0"/>'
    )
    xml = (
        '<LMSDataContainerHeader Version="2"><Element Name="movie.lif" UniqueID="a"><Children>'
        f'<Element Name="cells" UniqueID="b"><Memory Size="{stride}" MemoryBlockID="MemBlock_1"/>'
        "<Data><Image>"
        f"<ImageDescription><Channels>{channel}</Channels><Dimensions>{described}</Dimensions>"
        "</ImageDescription></Image></Data></Element></Children></Element></LMSDataContainerHeader>"
    ).encode("utf-16-le")
    name = "MemBlock_1".encode("utf-16-le")
    head = struct.pack("<IIBI", 0x70, len(xml) + 5, 0x2A, len(xml) // 2) + xml
    block = struct.pack("<IIBQBI", 0x70, 14 + len(name), 0x2A, VOXELS.nbytes, 0x2A, len(name) // 2) + name
    path.write_bytes(head + block + VOXELS.tobytes())
    return path


def nd2(folder: Path, more: Mapping[str, bytes] = MappingProxyType({})) -> Path:
    """Version 3: chunks of values with types and names, a plane after the other, and a map of all chunks."""
    path = folder / "movie.nd2"
    attributes = {
        "uiWidth": COLUMNS, "uiWidthBytes": 2 * COLUMNS, "uiHeight": ROWS, "uiComp": 1, "uiBpcInMemory": 16,
        "uiBpcSignificant": 16, "uiSequenceCount": FRAMES * PLANES, "uiVirtualComponents": 1,
    }  # fmt: skip
    planes = {"eType": 4, "uLoopPars": {"uiCount": PLANES, "dZStep": SPACING[0]}}
    times = {"uiCount": FRAMES, "dStart": 0.0, "dPeriod": INTERVAL * 1000, "dDuration": 0.0}
    experiment = {"eType": 1, "uLoopPars": times, "ppNextLevelEx": {"": planes}}
    dyes = {"m_ExcitationSpectrum": {"uiCount": 0}, "m_EmissionSpectrum": {"uiCount": 0}}
    plane = {"uiCompCount": 1, "sDescription": "GFP", "uiSampleIndex": 0, "pFluorescentProbe": dyes}
    picture = {
        "bCalibrated": True, "dCalibration": SPACING[2],
        "sPicturePlanes": {"uiCount": 1, "sPlaneNew": {"a0": plane}},
    }  # fmt: skip
    values: dict[str, Mapping[str, Any]] = {
        "ImageAttributesLV!": {"SLxImageAttributes": attributes},
        "ImageMetadataLV!": {"SLxExperiment": experiment},
        "ImageMetadataSeqLV|0!": {"SLxPictureMetadata": picture},
    }
    parts = [(b"ND2 FILE SIGNATURE CHUNK NAME01!", b"Ver3.0".ljust(64, b"\0"), 32)]
    parts += [(name.encode(), _variants(held), 4080) for name, held in values.items()]
    images = VOXELS.reshape(-1, ROWS, COLUMNS)
    parts += [(name.encode(), held, 4080) for name, held in more.items()]
    parts += [
        (f"ImageDataSeq|{n}!".encode(), bytes(8) + image.tobytes(), 4072) for n, image in enumerate(images)
    ]
    content, places = b"", b""
    for name, data, reserved in parts:
        places += name + struct.pack("<QQ", len(content), len(data)) if reserved > 32 else b""
        content += struct.pack("<IIQ", 0x0ABECEDA, reserved, len(data)) + name.ljust(reserved, b"\0") + data
    places += b"ND2 CHUNK MAP SIGNATURE 0000001!"
    end = struct.pack("<IIQ", 0x0ABECEDA, 4080, len(places)) + b"ND2 FILEMAP SIGNATURE NAME 0001!".ljust(
        4080, b"\0"
    )
    tail = b"ND2 CHUNK MAP SIGNATURE 0000001!" + struct.pack("<Q", len(content))
    path.write_bytes(content + end + places + tail)
    return path


def _variants(held: Mapping[str, Any]) -> bytes:
    """Values as ND2 writes them: type, name, value; a mapping is a level."""
    packed = b""
    for name, value in held.items():
        title = (name + "\0").encode("utf-16-le") if name else b"\0\0"
        if isinstance(value, Mapping):
            inner = _variants(value)
            length = 2 + len(title) + 12 + len(inner)
            packed += struct.pack("<BB", 11, len(title) // 2) + title
            packed += struct.pack("<IQ", len(value), length) + inner + bytes(8 * len(value))
            continue
        if isinstance(value, bool):
            kind, data = 1, struct.pack("<B", value)
        elif isinstance(value, int):
            kind, data = 3, struct.pack("<I", value)
        elif isinstance(value, float):
            kind, data = 6, struct.pack("<d", value)
        else:
            kind, data = 8, (value + "\0").encode("utf-16-le")
        packed += struct.pack("<BB", kind, len(title) // 2) + title + data
    return packed


CONTAINERS: Mapping[str, tuple[Callable[[Path], Path], dict[str, int], str | None]] = {
    "tiff": (tiff, {}, None),
    "ome-zarr 0.4": (ome_zarr, {"channel": 1}, "zarr"),
    "ome-zarr 0.5": (lambda folder: ome_zarr(folder, "0.5"), {"channel": 1}, "zarr"),
    "ome-zarr 0.5 sharded": (lambda folder: ome_zarr(folder, "0.5", True), {"channel": 1}, "zarr"),
    "zarr": (plain_zarr, {}, "zarr"),
    "hdf5": (hdf5, {}, "hdf5"),
    "imaris": (imaris, {}, "hdf5"),
    "nd2": (nd2, {}, "nd2"),
    "czi": (czi, {}, "czi"),
    "lif": (lif, {}, "lif"),
}
"""What writes it, how it is opened, and the extra that reads it."""
