"""All formats, each declared once: the table `FORMATS`.

From it come the table in docs/reference/files.md and the patterns in viewers/napari.yaml, by
``python docs/renew.py``; the suffixes and the advice in messages; and the cases of tests. A new format is its
module, a line here, and a sample in tests/samples/.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module

_ALL = "detections, tracks"
_HDF5 = ("*.h5", "*.hdf5", "*.he5")


@dataclass(frozen=True)
class Format:
    """A format: where its code is, which files are of it, and what is read and written.

    Parameters
    ----------
    name : str
        What pages call it.
    module : str
        Of `outbid.formats`, imported when it is needed; its folder says what the format holds.
    patterns : tuple of str
        Of the names, in lower case, of files that may be of it: their content decides. A pattern of folders
        ends in ``/``.
    suffixes : tuple of str
        Of files that are of it whatever they hold. Outputs of these suffixes are written.
    writes : str
        What, or by which command; empty for nothing.
    extra : str
        The optional dependency that has its package, if it needs one.
    about : str
        A sentence.
    """

    name: str
    module: str
    patterns: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    writes: str = ""
    extra: str = ""
    about: str = ""

    @property
    def has_images(self) -> bool:
        """Whether these are images; else they are detections and tracks."""
        return self.module.startswith("images.")

    @property
    def reads(self) -> str:
        """What is read, or by which command."""
        return "`outbid detect`" if self.has_images else _ALL

    @property
    def of_files(self) -> tuple[str, ...]:
        """Patterns of all its files, without those of folders."""
        named = (*(f"*{suffix}" for suffix in self.suffixes), *self.patterns)
        return tuple(pattern for pattern in named if not pattern.endswith("/"))

    def may_be(self, name: str) -> bool:
        """Whether a name in lower case, of a folder with ``/`` at its end, fits a pattern."""
        folder = name.endswith("/")
        return any(fnmatch(name, each) and each.endswith("/") == folder for each in self.patterns)

    def load(self) -> object:
        """What its module offers, as its `FORMAT`: a `PositionFormat` or an `ImageFormat`."""
        offered: object = import_module(f".{self.module}", __package__).FORMAT
        return offered


TIFF = Format(
    "TIFF, PNG", "images.folders", ("*.tif", "*.tiff", "*.btf", "*.png"),
    writes="`.ome.tif`: `outbid simulate --movie`; labels by track: `outbid convert MASKS TRACKS OUT.tif`",
    about="ImageJ, OME or plain, 1 bit and more; OME-TIFF in several files; or a folder with a file for each "
    "frame, plane or channel. Extra `images` for PNG and for compressions such as LZW.",
)  # fmt: skip
"""What a file or folder of images is that no other format recognises."""
FORMATS: tuple[Format, ...] = (
    Format("table", "tables.csv", (), (".csv", ".tsv"), _ALL,
           about="Of Outbid, Imaris, CELLMIA, trackpy, laptrack, btrack and others; points of napari."),
    Format("packed table", "tables.csv_gz", (), (".csv.gz", ".tsv.gz"), _ALL, about="The same, by gzip."),
    Format("Parquet", "tables.parquet", ("*.parquet/", "*.pq/"), (".parquet", ".pq"), _ALL,
           about="The same table; also a folder with `part-….parquet`."),
    Format("ISBI 2012 challenge", "graphs.isbi", ("*.xml",), (".isbi.xml",), "tracks",
           about="With its root, or that of simple exports of TrackMate and Icy."),
    Format("TrackMate", "graphs.trackmate", (), (".xml",), _ALL, about="Versions 3 to 8."),
    Format("GEFF", "graphs.geff", ("*/",), (".geff",), _ALL, "geff",
           "A folder, also inside a container of zarr."),
    Format("TrackMate, exported", "tables.trackmate_csv", ("*spots.csv",),
           about="With `…edges.csv` beside it."),
    Format("Cell Tracking Challenge", "graphs.ctc", ("*/", "*_track.txt"),
           writes="`outbid convert MASKS TRACKS 01_RES`: masks and `res_track.txt`",
           about="A folder with `man_track.txt` or `res_track.txt` and masks."),
    Format("OpenPTV", "tables.openptv", ("*/", "*_is.*"), about="`rt_is` and `ptv_is`, or their folder."),
    Format("napari, btrack", "tables.npy", ("*.npy",), about="The array of a layer of tracks."),
    Format("MyPTV", "tables.myptv", ("*traj*", "particles*"), about="Trajectories, particles."),
    Format("Excel", "tables.excel", ("*.xlsx",), extra="excel", about="The table on the first sheet."),
    Format("Mastodon", "graphs.mastodon", ("*.mastodon",), about="A project."),
    Format("text", "tables.csv", ("*.txt",), about="A table as in `.csv`."),
    Format("btrack, Picasso", "tables.hdf5_tables", _HDF5, extra="hdf5",
           about="Objects and tracks, localisations, or data sets of named columns."),
    Format("OME-Zarr, Zarr", "images.zarr", ("*.zarr*", "*/"), extra="zarr",
           about="0.4 and 0.5, or plain arrays: a folder, `.zarr.zip` or URL; chunked or sharded."),
    Format("Imaris", "images.imaris", ("*.ims",), extra="hdf5", about="With all levels of resolution."),
    Format("HDF5", "images.hdf5", _HDF5, extra="hdf5", about="Each data set over y and x is a scene."),
    Format("Nikon", "images.nd2", ("*.nd2",), extra="nd2", about="Each stage position is a scene."),
    Format("Zeiss", "images.czi", ("*.czi",), extra="czi", about="Full resolution, put together from tiles."),
    Format("Leica", "images.lif", ("*.lif",), extra="lif", about="Each image is a scene."),
    TIFF,
)  # fmt: skip
"""All formats. Of those whose patterns fit, the first is taken that recognises the content; else the first
whose suffix fits, which is named in messages in this order."""
WRITTEN = {suffix: each for each in FORMATS for suffix in each.suffixes}
"""Formats by the suffixes of outputs."""
