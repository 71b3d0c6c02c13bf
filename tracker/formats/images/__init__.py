"""Images, one format a module; `opening` opens any of them, `frames` reads them frame by frame.

`labels` turns images of labels into centroids.
"""
