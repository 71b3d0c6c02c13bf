"""Learned linking: prepare, learn, decide, sum up.

`prepare`    detections as arrays, sorted by position
`features`   columns that help to link
`model`      what is assumed of particles: motion, association, movie, gate
`inference`  the posterior over links under a model: joint probabilistic data association
`learn`      the model from the movie, by expectation and maximisation over `inference`
`lineage`    the posterior probability of divisions and merges, beside that of links
`linking`    all of these, for one movie
`periodic`   the same in a periodic box
`summary`    what was learned, in the user's units, as text and as plain values
`live`       links detections frame by frame while a movie is recorded
"""
