"""Process a movie in ranges of frames, in this process or on many machines.

`movie`            from file to file: `track_in_ranges`, `detect_in_ranges`
`cluster`          tasks on dask.distributed, which it alone imports
`chains`           track numbers joined over the borders of ranges
`learned`          the model from three parts, handed out; ranges that overlap
`tasks`, `plan`    what each task does; which rows are a range
`files`            what tasks write for those after them
"""
