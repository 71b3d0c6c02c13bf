"""Particles whose tracks are known: the truth, and what a microscope sees of it.

motions.py     how one particle moves: persistent, Brownian, Ornstein-Uhlenbeck
walks.py       many of them in a box: walls, births, deaths -> Tracks
microscope.py  localisation noise, missed detections, clutter -> what a tracker is given
streams.py     random numbers that depend on seed, purpose and frame alone
scenes.py      kinds of movies, by what makes them hard, in units of the spacing
theory.py      what such movies must give
experiments/   questions to them, one a file; experiment.py says what one is, conduct.py does it
linkers/       who links in them, one a file: ours, baselines, other packages; comparison.py compares
bootstrap.py   intervals over seeds
"""
