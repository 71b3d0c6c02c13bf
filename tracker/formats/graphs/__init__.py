"""Graphs of detections and links, one format a module."""
