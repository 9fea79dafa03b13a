"""Regions near points: balls, the few units that change in them, cells cut by these, and distances to walls."""
