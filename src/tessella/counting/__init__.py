"""Counting and listing the regions of a network on a domain."""
