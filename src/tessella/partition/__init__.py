"""What is counted: the tree of decisions whose leaves are the regions, bounds and exact answers below a prefix, and one region."""
