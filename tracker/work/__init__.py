"""Many movies, each processed independently, by jobs that are plain data and can go to other processes.

`many`      runs jobs in processes or on any executor; keeps finished outputs, reports failures
`pooled`    one model for many movies
`jobs`      what is done to a movie from file to file, and what every run record holds
`scored`, `converted`, `advised`  the jobs of these commands
"""
