"""The forms of the napari plugin, one a file; with `outbid.viewers.window` alone they know napari and Qt.

form.py      the base: fields, Run and Cancel, live preview, errors as what to change
work.py      a function that runs beside the window
fields.py    boxes for numbers that may be found out, for layers, and for steps of a way
pair.py      base class of the forms that compare two results: a score table and error navigation
shown.py     arrays into napari's layers, and where a layer lies
"""
