"""Images, one format a module; `opening` opens any of them, `frames` reads them frame by frame.

`stacks` is what a format of images offers, and `folders` opens TIFF, PNG and folders of these. `labels` turns
images of labels into centroids.
"""
