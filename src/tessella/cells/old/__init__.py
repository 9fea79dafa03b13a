"""What is asked of a cell, as it was written before state had names; it goes when nobody uses it."""
