"""Many movies, each by itself; and what is done to one, as data that goes to other processes.

`many`      in processes or on any executor; what is done is kept, failures are reported
`pooled`    one model for many movies
`jobs`      what is done to a movie from file to file, and what every run record holds
`scored`, `converted`, `advised`  the jobs of these commands
"""
