"""Upper bounds on the number of regions."""

from tessella.upper.configuration import configuration_bound, montufar_bound, raghu_bound
from tessella.upper.empirical import Empirical, empirical_bound

__all__ = ["Empirical", "configuration_bound", "empirical_bound", "montufar_bound", "raghu_bound"]
