"""Particles: where they were seen, and which detection follows which.

`detections`   `Detections`: positions and features, frame by frame
`tracks`       `Tracks`: detections and the links between them
`tables`       both as Arrow tables, for files and data frames; `arrow` reads columns of them
`reliability`  how far to trust tracks
`remarks`      sentences on detections that can hardly be linked, or are there twice
`html`         what notebooks show: tables, and a picture of tracks
"""
