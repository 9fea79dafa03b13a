"""Compiled linear programming; knows rows and a box, nothing of networks."""
