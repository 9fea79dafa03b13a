"""Experiments with Tessella: programs on its public interface, not part of the installed package."""
