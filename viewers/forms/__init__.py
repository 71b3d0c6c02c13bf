"""The forms of the napari plugin, one a file; with `outbid.viewers.window` alone they know napari and Qt.

form.py      the base: fields, Run and Cancel, live preview, errors as what to change
work.py      a function that runs in the background
fields.py    boxes for numbers that may be automatic, for layers, and for navigation
pair.py      base class of the forms that compare two results: a score table and error navigation
napari_layers.py  arrays into napari's layers, and the transform of a layer
"""

import ctypes
import sys

if sys.version_info < (3, 12) and "PySide6" in sys.modules:
    # PySide6 6.12 counts on objects that never end, as since Python 3.12: before, each call without a result
    # takes a reference of None, until Python aborts ("deallocating None"). So there are enough of them.
    for _one in (None, True, False):
        ctypes.c_ssize_t.from_address(id(_one)).value += 1 << 40
