"""Statistics over all regions: exact where they can be listed, else from uniform samples with confidence intervals."""
