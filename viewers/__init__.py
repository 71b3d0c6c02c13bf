"""Views of tracks: layers for napari, and reports.

`judged` distinguishes right links from wrong ones, `layers` gives napari's layers as plain arrays, `curves`
the numbers that a report plots, `plots` plots them, `crops` cuts parts
of a movie, and `report` makes one page of everything.

For `outbid view`: `opened` determines the kinds of files, `scene` puts everything on one grid of voxels,
`screen` finds a display and `window` opens napari.

For the forms: `from_layers` makes detections and tracks of layers, `nearby` selects a part of a movie that
is small enough for a preview, `objects` numbers the objects of a label image by their tracks, `proofreading`
is a session of questions and answers, and `forms` are the forms of the napari plugin. `napari.yaml` names
these, and the readers, writers and samples of `plugin`.
Only `forms` and `window` import napari and Qt.
"""
