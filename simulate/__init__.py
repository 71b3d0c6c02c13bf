"""Simulated particles with known tracks: the truth, and images or detections of it.

motions.py     how one particle moves: persistent, Brownian, Ornstein-Uhlenbeck
walks.py       many particles in a box: walls, births, deaths -> Tracks
microscope.py  localisation noise, missed detections, clutter -> the input of a tracker
camera.py      rendered image stacks of the particles, with photon noise
streams.py     random numbers that depend on seed, purpose and frame alone
scenes.py      kinds of movies, by what makes them hard; lengths in units of density^(-1/3)
theory.py      accuracy that theory predicts for such movies
experiments/   experiments on such movies: experiment.py defines, conduct.py runs, rows.py shows them
               experiments/papers: tables and figures of papers, which paper.py defines;
               matrices.py makes their costs
linkers/       linkers to compare, one a file: Outbid, baselines, other packages; comparison.py compares them
bootstrap.py   confidence intervals over seeds
"""
