"""Public data: from a mirror, or fetched (here from this very machine), and never another file."""

import functools
import hashlib
import re
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from outbid import InputError, ResourceError, SettingsError, read_detections, read_tracks
from outbid.data.catalogue import CACHE, MIRROR, Dataset, PublicFile, catalogue, fetch

CONTENT = {"a/one.csv": b"frame,y,x\n0,1,2\n", "a/two.csv": b"frame,y,x\n0,3,4\n"}


def dataset_at(address: str) -> Dataset:
    made = (
        PublicFile(path, f"{address}/{path}", hashlib.sha256(content).hexdigest())
        for path, content in CONTENT.items()
    )
    return Dataset("ours", "two tables", "CC0-1.0", "nobody", tuple(made))


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """A folder with the files."""
    for path, content in CONTENT.items():
        (tmp_path / "served" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "served" / path).write_bytes(content)
    return tmp_path / "served"


@pytest.fixture
def address(served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of that folder on this machine, and a cache of its own."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_request(self, *_: object) -> None:
            """Nothing on stderr."""

        log_error = log_request

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv(MIRROR, raising=False)
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(served)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


# ---------------------------------------------------------------- the catalogue


def test_every_data_set_states_where_it_is_and_whose() -> None:
    paths = [file.path for dataset in catalogue().values() for file in dataset.files]
    assert len(paths) == len(set(paths))
    for name, dataset in catalogue().items():
        assert dataset.name == name
        assert all((dataset.about, dataset.licence, dataset.credit, dataset.files))
        for file in dataset.files:
            assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
            # At a commit, which never changes, and not at a branch.
            assert re.fullmatch(r"https://[^/]+/[^/]+/[^/]+/[0-9a-f]{40}/\S+", file.url)
            assert ".." not in Path(file.path).parts


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_the_real_files_are_those_of_the_catalogue(
    name: str, real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MIRROR, str(real_data))
    assert [path.is_file() for path in fetch(name)] == [True] * len(catalogue()[name].files)


@pytest.mark.parametrize(
    ("name", "reference"),
    [("celegans", "trackmate_celegans5pc"), ("ecoli", "trackmate_ecoli_fusions"), ("sptpalm", "saspt")],
)
def test_tracks_of_the_catalogue_are_read(
    name: str, reference: str, real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MIRROR, str(real_data))
    (path,) = fetch(name)
    # The reference tables are rounded to hundredths.
    expected = read_detections(real_data / "formats" / f"tidy_{reference}.csv")
    found = read_tracks(path).detections
    assert np.array_equal(found.frame, expected.frame)
    np.testing.assert_allclose(
        np.sort(found.position, axis=0), np.sort(expected.position, axis=0), rtol=0, atol=0.0051
    )


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingsError, match=r"no data set 'celegan'.*celegans, ecoli"):
        fetch("celegan")


# ---------------------------------------------------------------- a mirror


@pytest.mark.smoke
def test_a_mirror_is_used_instead_of_the_network(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR, str(served))
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert fetch(dataset_at("http://unreachable.invalid")) == [served / path for path in CONTENT]


def test_a_file_that_the_mirror_lacks_is_named(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR, str(served))
    (served / "a" / "two.csv").unlink()
    with pytest.raises(ResourceError, match=r"two\.csv is not there.*unset OUTBID_DATA_MIRROR"):
        fetch(dataset_at("http://unreachable.invalid"))


def test_another_file_in_the_mirror_is_refused(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR, str(served))
    (served / "a" / "two.csv").write_bytes(b"frame,y,x\n0,3,5\n")
    with pytest.raises(InputError, match=r"two\.csv is another file"):
        fetch(dataset_at("http://unreachable.invalid"))


# ---------------------------------------------------------------- fetching


def test_files_are_fetched_once(served: Path, address: str, tmp_path: Path) -> None:
    paths = fetch(dataset_at(address))
    assert [path.read_bytes() for path in paths] == list(CONTENT.values())
    assert paths == [tmp_path / "cache" / path for path in CONTENT]
    for path in CONTENT:
        (served / path).unlink()
    assert fetch(dataset_at(address)) == paths


def test_another_content_is_refused_and_not_kept(served: Path, address: str, tmp_path: Path) -> None:
    (served / "a" / "two.csv").write_bytes(b"<html>moved</html>")
    with pytest.raises(ResourceError, match=r"two\.csv cannot be fetched.*OUTBID_DATA_MIRROR"):
        fetch(dataset_at(address))
    assert not (tmp_path / "cache" / "a" / "two.csv").exists()


def test_a_page_that_is_gone_is_named(served: Path, address: str) -> None:
    (served / "a" / "one.csv").unlink()
    with pytest.raises(ResourceError, match=r"one\.csv cannot be fetched: 404"):
        fetch(dataset_at(address))


def test_without_pooch_the_error_says_what_to_install(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ResourceError, match=r"pip install 'outbid\[data\]'"):
        fetch(dataset_at(address))
