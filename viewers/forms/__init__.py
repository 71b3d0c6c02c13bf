"""The forms of the napari plugin, one a file; with `outbid.viewers.window` alone they know napari and Qt.

form.py      the base: fields, Run and Cancel, live preview, errors as what to change
work.py      a function that runs in the background
fields.py    boxes for numbers that may be automatic, for layers, and for navigation
pair.py      base class of the forms that compare two results: a score table and error navigation
napari_layers.py  arrays into napari's layers, and the transform of a layer
"""
