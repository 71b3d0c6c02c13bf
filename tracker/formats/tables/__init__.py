"""Tables with a row for each detection, one format a module, and what their columns mean.

`rows`     a table as read from a file
`table`    such tables to Detections and Tracks, and back; what a format of tables offers
`edges`    the same for numbered detections, and for those with track numbers
`columns`  what columns are, by their names; `axes` those of positions, `times` those of frames
"""
