"""The number of regions: who walks the tree, in which order, and what the parts add up to."""
