"""A real window of napari, driven as a user drives it."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

import napari
import numpy as np
from numpy.typing import ArrayLike, NDArray
from qtpy.QtCore import QEventLoop, QPoint, Qt, QTimer
from qtpy.QtGui import QColor
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractSpinBox, QWidget

SIZE = (1400, 850)


def pause(milliseconds: int) -> None:
    """Let the window live."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


class Window:
    """A viewer of napari in a window, and what a user does in it.

    Pictures go to the folder that OUTBID_PICTURES names, else to pytest's temporary one.
    """

    def __init__(self, pictures: Path) -> None:
        self.pictures = pictures
        pictures.mkdir(parents=True, exist_ok=True)
        self.errors: list[BaseException] = []
        self._watch()
        self.viewer = napari.Viewer()
        self.viewer.window.resize(*SIZE)
        pause(200)
        gc.freeze()  # napari collects garbage when layers are removed; what is there by now is none

    def _keep(self, _: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
        self.errors.append(error)

    def _watch(self) -> None:
        """PyQt gives errors in slots to the hook; pytest-qt, where it is installed, would take them."""
        sys.excepthook = self._keep

    def close(self) -> None:
        sys.excepthook = sys.__excepthook__
        self.viewer.close()
        pause(100)

    def click_in_image(self, position: ArrayLike) -> None:
        """Click at the last two coordinates, y and x in the view."""
        canvas, camera = self.viewer.window._qt_viewer.canvas.native, self.viewer.scene.camera
        y, x = (np.asarray(position)[-2:] - camera.center[-2:]) * camera.zoom
        at = QPoint(round(canvas.width() / 2 + x), round(canvas.height() / 2 + y))
        QTest.mouseMove(canvas, at)
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at)
        self.wait(lambda: True)

    def clear(self) -> None:
        """Take all forms and layers away."""
        self.viewer.window.remove_dock_widget("all")
        pause(10)
        self.viewer.layers.clear()
        self.viewer.dims.ndisplay = 2
        self.viewer.reset_view()
        pause(50)
        self.errors.clear()
        sys.excepthook = sys.__excepthook__

    def form(self, name: str) -> Any:
        """Open a form as its menu entry does."""
        self._watch()
        _, form = self.viewer.window.add_plugin_dock_widget("outbid", name)
        pause(50)
        return form

    def click(self, button: QWidget) -> None:
        self._watch()
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def tick(self, box: Any, on: bool = True) -> None:
        """Click a check box, where its mark is, until it is as wanted."""
        self._watch()
        if box.isChecked() != on:
            box.setFocus()
            QTest.keyClick(box, Qt.Key.Key_Space)

    def write(self, box: QAbstractSpinBox, text: str) -> None:
        """Type into a box of numbers."""
        self._watch()
        box.setFocus()
        box.selectAll()
        QTest.keyClick(box, Qt.Key.Key_Backspace)
        QTest.keyClicks(box, text)
        QTest.keyClick(box, Qt.Key.Key_Return)

    def press(self, widget: QWidget, key: str) -> None:
        """Press a key by its name."""
        self._watch()
        QTest.keyClick(widget, getattr(Qt.Key, f"Key_{key}"))

    def wait(self, what: Callable[[], object], seconds: float = 90.0) -> float:
        """Let the window live until something holds; the seconds it took."""
        self._watch()
        start = monotonic()
        while not what():
            assert self.errors == []
            assert monotonic() - start < seconds, "it did not happen in time"
            pause(10)
        return monotonic() - start

    @contextmanager
    def longest_stall(self) -> Iterator["Stall"]:
        """Measure the longest time in which the window answers nothing."""
        stall = Stall()
        timer = QTimer()
        timer.timeout.connect(stall.tick)
        timer.start(5)
        yield stall
        timer.stop()

    def count(self, picture: NDArray[np.uint8], colour: str) -> int:
        """Pixels of a colour, in its shades and blends."""
        pixel = picture[..., :3].astype(float)
        bright = pixel.max(axis=-1)
        want = np.array(QColor(colour).getRgb()[:3], dtype=float)
        shade = pixel / np.maximum(bright, 1)[..., None] - want / want.max()
        return int(((bright > 100) & (np.abs(shade).max(axis=-1) < 0.15)).sum())

    def shot(self, name: str, *, canvas_only: bool = False) -> NDArray[np.uint8]:
        """(height, width, 4) uint8: what is seen now; kept as a file."""
        pause(100)
        path = self.pictures / f"{name}.png"
        return self.viewer.screenshot(str(path), canvas_only=canvas_only, flash=False)


class Stall:
    """The longest time between two ticks, in seconds."""

    def __init__(self) -> None:
        self.seconds, self._last = 0.0, monotonic()

    def tick(self) -> None:
        self.seconds = max(self.seconds, monotonic() - self._last)
        self._last = monotonic()
