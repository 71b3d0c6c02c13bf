"""Fixtures that all tests share: paths of the repository and of the real data."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from checkout import REPOSITORY
from examples import examples

from outbid import TrackingSettings, Tracks, read_detections, read_tracks, score, track
from outbid._arrays import gpu_names
from outbid.data import sample

if TYPE_CHECKING:
    from napari_window import Window

_HOW = {"deadline": None, "derandomize": True, "print_blob": True}
hypothesis.settings.register_profile("outbid", max_examples=examples(100), **_HOW)
hypothesis.settings.load_profile("outbid")


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of real movies beside the checkout; the test is skipped where there is none."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data (../shared/data) are not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def truth() -> Tracks:
    """The tracks of the sample."""
    return read_tracks(sample("walks"))


@pytest.fixture(scope="session")
def found() -> Tracks:
    """What a linker makes of its detections, not without errors."""
    return track(read_detections(sample("walks")), TrackingSettings(max_distance=4, max_gap=2)).tracks


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts, which what runs the tests may ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _gpu_where_one_is_needed(request: pytest.FixtureRequest) -> None:
    """Skip tests with the marker `gpu` where there is none, and say why."""
    if request.node.get_closest_marker("gpu") is None:
        return
    try:
        gpu_names()
    except RuntimeError as reason:
        pytest.skip(str(reason))


def _compile_kernels() -> None:
    """Once in an environment, and then it may take longer than any test waits for its window."""
    seen = read_detections(sample("walks"))
    seen = seen.take(seen.frame < 6)
    for settings in (TrackingSettings(max_distance=2.0, max_gap=1), TrackingSettings()):
        found = track(seen, settings).tracks
    score(found, found)


@pytest.fixture(scope="session")
def _napari_window(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Window]":
    """A window of napari for all tests, for it takes seconds to open one."""
    if not os.environ.get("DISPLAY"):
        pytest.skip("no screen: run in one (`make test` does so, or xvfb-run -a pytest …)")
    pytest.importorskip("napari", reason="napari is not installed: pip install 'outbid[napari]'")
    pytest.importorskip("qtpy.QtWidgets", reason="Qt does not start here", exc_type=ImportError)
    os.environ["NAPARI_CONFIG"] = str(tmp_path_factory.mktemp("napari") / "settings.yaml")
    from napari_window import Window

    _compile_kernels()
    window = Window(Path(os.environ.get("OUTBID_PICTURES") or tmp_path_factory.mktemp("pictures")))
    yield window
    window.close()


@pytest.fixture
def window(_napari_window: "Window") -> "Iterator[Window]":
    """The window of napari, without layers and forms; errors that its callbacks raised fail the test."""
    yield _napari_window
    errors = list(_napari_window.errors)
    _napari_window.clear()
    assert errors == []
