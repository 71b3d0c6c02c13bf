"""Tables with a row for each detection, one format a module, and what their columns mean.

`table`    tables to Detections and Tracks, and back; `edges` the same for numbered detections
`columns`  what columns are, by their names; `axes` those of positions, `times` those of frames
"""
