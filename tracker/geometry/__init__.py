"""Geometry of points.

`gating`      all pairs nearer than a radius, by a cell list
`neighbours`  the nearest few points of each point, by a cell list
"""
