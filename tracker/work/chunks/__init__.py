"""Process a movie in chunks of frames, in this process or on many machines.

`movie`            from file to file: `track_in_chunks`, `detect_in_chunks`
`cluster`          tasks on dask.distributed, which it alone imports
`chains`           track numbers joined over the borders of chunks
`learned`          the model from three parts, handed out; chunks that overlap
`tasks`, `plan`    what each task does; which rows are a chunk
`files`            what tasks write for those after them
"""
