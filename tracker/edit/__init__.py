"""Changes of images and tracks that a person asks for.

`crop`          a region, some frames, a mask: of images before detection, of tracks after linking
`filter`        some of the tracks, by their length and features
`fill_gaps`     positions in gaps
`relabel`       label images by track
`proofreading`  a model that is fixed while pins come and go; the links that are uncertain
"""
