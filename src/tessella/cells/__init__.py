"""One question about one cell, compiled: whether there is a point on this side of this row."""
