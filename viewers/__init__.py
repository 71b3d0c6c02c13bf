"""What is seen of tracks: layers for napari and reports.

`judged` tells right links from wrong ones, `layers` gives napari's layers as plain arrays, `curves` the
numbers that a report draws, `plots` draws them, and `report` puts all into one page.

For `outbid view`: `opened` tells files apart, `lazy` reads frames when they are looked at, `scene` puts all
on one grid of voxels, `screen` finds a display and `window` opens napari.

For the forms: `taken` makes detections, tracks and frames of layers, `nearby` picks what a preview can
track while one waits, and `forms` are the forms of the napari plugin. `napari.yaml` names these, and the
readers, writers and samples of `plugin`. Only what stands in `forms` and `window` knows napari and Qt.
"""
