"""Watching: detect, link and act on a movie while it is recorded; afterwards link it again as a whole.

`account`   how a movie is watched, and what happened meanwhile
`watch`     the loop, from frames that arrive to tracks and events; what the command calls
`choice`    which source fits a path
`sources`   what all sources of frames offer
`folder`, `tiff`, `zarr`, `rows`  images of a folder, a TIFF file, OME-Zarr, and tables or stdin, as they grow
`order`     frames by their numbers: which comes next, which is missing, which is late
`seeing`    detections of one frame, by a model that was learned from the first frames, ahead of linking
`light`     whether frames differ from those, so that it is learned again
`following` tracks of one frame, by `Live`, whose model was learned from the first frames as well
`dividing`  divisions, by what those of the first frames were like
`parts`     the output while it grows: parts, the state from which a killed run goes on, the current table
`events`    conditions on tracks, and which of them are met in a frame
`tail`      what was linked since the last part, for who looks on; `reading` reads it all in another process
`showing`   as arrays: images that are read when they are looked at, the latest tracks
`apart`     such a process: a viewer of a watch, a watch of a viewer
`acting`    what is done at an event: a line of JSON, a command, a Python function
`ending`    the whole movie, detected and linked again; how many links changed
"""
