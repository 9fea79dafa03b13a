"""Regions along paths: the walk, what it knows of its own errors, and exact arithmetic for what it cannot decide."""
