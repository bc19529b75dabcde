"""Cells, the databases of one installation: the map of topics, copies of configuration, sides of a split, repairs."""
