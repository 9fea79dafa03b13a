"""Tests over many seeds: the first ones run always, the others with the slow tests."""

import pytest


def seeds(number, *, quick):
    """Numbers from 0 on; those from ``quick`` on are marked slow."""
    return [pytest.param(seed, marks=[pytest.mark.slow] if seed >= quick else []) for seed in range(number)]
