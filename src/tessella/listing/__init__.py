"""Regions one by one: all of them, or as polygons."""
