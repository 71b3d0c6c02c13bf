"""What all tests share: which of them run, and fixtures of the repository, the real data and the window."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import layers
import pytest
from checkout import REPOSITORY
from examples import examples

from outbid import TrackingSettings, Tracks, read_detections, read_tracks, score, track
from outbid.compute.arrays import gpu_names
from outbid.data import sample

if TYPE_CHECKING:
    from napari_window import Window

_HOW = {"deadline": None, "derandomize": True, "print_blob": True}
hypothesis.settings.register_profile("outbid", max_examples=examples(100), **_HOW)
hypothesis.settings.load_profile("outbid")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which layers run, and whether a test may compile."""
    parser.addoption(
        "--push", nargs="?", const="changed", metavar="LAYERS",
        help="run the smoke part of every layer, and these layers whole: names with commas, or none; without "
        "a value, those that have changed since the last whole run",
    )  # fmt: skip
    parser.addoption("--compiled", action="store_true", help="a test that compiles a kernel fails")


def pytest_report_header(config: pytest.Config) -> str | None:
    """State which layers run as a whole, and why."""
    if config.getoption("--push") is None:
        return None
    return _pushed(config)[1]


def _pushed(config: pytest.Config) -> tuple[set[str], str]:
    """Layers that run as a whole, and a sentence that states why."""
    words = str(config.getoption("--push"))
    if words == "changed":
        return layers.push_layers()
    named = set(words.split(",")) - {"none"}
    unknown = named - {layer.name for layer in layers.LAYERS}
    if unknown:
        raise pytest.UsageError(f"There is no layer {', '.join(sorted(unknown))}; see tests/layers.py.")
    return named, f"whole: {words}."


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep windows in one process, and every other file; with --push, leave out what need not run."""
    layer_of = {item: _layer_of(item) for item in items}
    for item, layer in layer_of.items():
        item.add_marker(pytest.mark.xdist_group("window" if layer == "windows" else item.path.stem))
    last = [layer.name for layer in reversed(layers.LAYERS)]
    items.sort(key=lambda item: last.index(layer_of[item]))  # the longest files begin first
    if config.getoption("--push") is None:
        return
    whole, seed = _pushed(config)[0], layers.seed_of_commit()
    count, met = Counter(_function_of(item) for item in items), Counter[str]()
    kept, left = [], []
    for item in items:
        number = met[_function_of(item)]
        met[_function_of(item)] += 1
        smoke = item.get_closest_marker("smoke") and number in layers.slice_of_cases(
            count[_function_of(item)], seed
        )
        (kept if smoke or layer_of[item] in whole else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def _function_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _layer_of(item: pytest.Item) -> str:
    """That of its file; of the examples in the docstrings of a module, that of the module."""
    module = getattr(item, "callspec", None) and item.callspec.params.get("name")  # type: ignore[attr-defined]
    if item.name.startswith("test_examples_in_docstrings["):
        return layers.layer_of_module(module)
    return layers.layer_of_test(item.path.stem)


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


@pytest.fixture(scope="session")
def _compiled(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Kernels of the package whose compilation has begun in this process; none without --compiled."""
    lines: list[str] = []
    if not request.config.getoption("--compiled"):
        yield lines
        return
    from kernels import line_of
    from numba.core import event

    from outbid.compute.shipped import KernelCache

    class Listener(event.Listener):
        def on_start(self, event: event.Event) -> None:
            kernel = event.data["dispatcher"]
            if isinstance(kernel._cache, KernelCache):  # else another kernel calls it, and holds its code
                lines.append(line_of(kernel, event.data["args"]))

        def on_end(self, event: event.Event) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield lines


@pytest.fixture(autouse=True)
def _no_kernel_is_compiled(request: pytest.FixtureRequest, _compiled: list[str]) -> Iterator[None]:
    """With --compiled, a test without the marker `compiles` fails if it compiles a kernel of the package."""
    before = len(_compiled)
    yield
    new = _compiled[before:]
    if new and request.node.get_closest_marker("compiles") is None:
        lines = "\n".join(new)
        pytest.fail(f"Kernels were compiled. Run `make kernels`, or add to tests/kernels.txt:\n{lines}")


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
