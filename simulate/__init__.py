"""Particles whose tracks are known: the truth, and what a microscope sees of it.

motions.py     how one particle moves: persistent, Brownian, Ornstein-Uhlenbeck
walks.py       many of them in a box: walls, births, deaths -> Tracks
microscope.py  localisation noise, missed detections, clutter -> what a tracker is given
streams.py     random numbers that depend on seed, purpose and frame alone
"""
