"""What is seen of tracks: layers for napari and reports.

`judged` tells right links from wrong ones, `layers` gives napari's layers as plain arrays, `curves` the
numbers that a report draws, `plots` draws them, and `report` puts all into one page.
"""
