"""Work from file to file: a job is one file, a chunk some frames of it, a batch what a GPU takes at once.

Jobs are plain data, so that other processes can run them.

`jobs`      what is done to a movie, and what every run record holds
`score_job`, `convert_job`  the jobs of these commands
`many`      runs jobs in processes or on any executor; keeps finished outputs, reports failures
`pooled`    one model for many movies
`chunks`    one movie in chunks of frames, here or on a cluster; `cluster` is dask
`stream`    the same for a gate without gaps, in this process, with all stages at the same time
`estimate`  the time and memory that a job will need
"""
