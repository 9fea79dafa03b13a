"""Random descents through the tree of regions: estimates, lower bounds that hold with a confidence, samples."""
