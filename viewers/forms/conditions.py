"""Which layers of tracks are measured together, and of which condition each is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QTreeWidget, QTreeWidgetItem
from superqt.utils import signals_blocked


class ConditionList(QTreeWidget):
    """A line for each layer of tracks, with the name of its condition; none is not measured.

    Parameters
    ----------
    viewer : napari.Viewer
    takes : callable
        Whether a layer is listed.
    """

    edited = Signal()

    def __init__(self, viewer: Any, takes: Callable[[Any], bool]) -> None:
        super().__init__()
        self._viewer, self._takes = viewer, takes
        self.setHeaderLabels(["tracks", "condition"])
        self.setRootIsDecorated(False)
        self.setMaximumHeight(100)
        self.setToolTip("Double-click to name the condition of a layer. Layers of one name are its movies.")
        for event in ("inserted", "removed", "renamed"):
            getattr(viewer.layers.events, event).connect(self.renew)
        self.itemChanged.connect(self.edited)
        self.itemDoubleClicked.connect(lambda item, _: self.editItem(item, 1))
        self.renew()

    def renew(self, _: object = None) -> None:
        """List the layers that there are now, with their conditions of before."""
        named = {id(layer): name for name, layers in self.conditions().items() for layer in layers}
        with signals_blocked(self):
            self.clear()
            for layer in self._viewer.layers:
                if self._takes(layer):
                    item = QTreeWidgetItem([layer.name, named.get(id(layer), "")])
                    item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
                    item.setData(0, Qt.ItemDataRole.UserRole, layer)
                    self.addTopLevelItem(item)
        self.setVisible(self.topLevelItemCount() > 1)

    def conditions(self) -> Mapping[str, list[Any]]:
        """The layers of each condition, in the order of the layers; empty if none is named."""
        found: dict[str, list[Any]] = {}
        for row in range(self.topLevelItemCount()):
            item = self.topLevelItem(row)
            if item.text(1).strip():
                layer = item.data(0, Qt.ItemDataRole.UserRole)
                found.setdefault(item.text(1).strip(), []).append(layer)
        return found
