"""A real window of napari, driven as a user drives it."""

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

import napari
import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractSpinBox, QWidget

SIZE = (1400, 850)


class Window:
    """A viewer of napari in a window, and what a user does in it.

    Pictures go to the folder that OUTBID_PICTURES names, else to pytest's temporary one.
    """

    def __init__(self, pictures: Path) -> None:
        self.pictures = pictures
        pictures.mkdir(parents=True, exist_ok=True)
        self.errors: list[BaseException] = []
        self._hook, sys.excepthook = sys.excepthook, self._keep  # PyQt calls it for errors in slots
        self.viewer = napari.Viewer()
        self.viewer.window.resize(*SIZE)
        QTest.qWait(200)

    def _keep(self, _: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
        self.errors.append(error)

    def close(self) -> None:
        sys.excepthook = self._hook
        self.viewer.close()
        QTest.qWait(100)

    def clear(self) -> None:
        """Take all forms and layers away."""
        self.viewer.window.remove_dock_widget("all")
        QTest.qWait(10)
        gc.collect()
        self.viewer.layers.clear()
        self.viewer.dims.ndisplay = 2
        self.viewer.reset_view()
        QTest.qWait(50)
        self.errors.clear()

    def form(self, name: str) -> Any:
        """Open a form as its menu entry does."""
        _, form = self.viewer.window.add_plugin_dock_widget("outbid", name)
        QTest.qWait(50)
        return form

    def click(self, button: QWidget) -> None:
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def tick(self, box: Any, on: bool = True) -> None:
        """Click a check box, where its mark is, until it is as wanted."""
        if box.isChecked() != on:
            box.setFocus()
            QTest.keyClick(box, Qt.Key.Key_Space)

    def write(self, box: QAbstractSpinBox, text: str) -> None:
        """Type into a box of numbers."""
        box.setFocus()
        box.selectAll()
        QTest.keyClicks(box, text)
        QTest.keyClick(box, Qt.Key.Key_Return)

    def wait(self, what: Callable[[], object], seconds: float = 60.0) -> float:
        """Let the window live until something holds; the seconds it took."""
        start = monotonic()
        while not what():
            assert monotonic() - start < seconds, "it did not happen in time"
            QTest.qWait(10)
        return monotonic() - start

    def shot(self, name: str, *, canvas_only: bool = False) -> NDArray[np.uint8]:
        """(height, width, 4) uint8: what is seen now; kept as a file."""
        QTest.qWait(100)
        path = self.pictures / f"{name}.png"
        return self.viewer.screenshot(str(path), canvas_only=canvas_only, flash=False)
