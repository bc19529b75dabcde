"""Cells, the databases of one installation: their list, copies of configuration, repairs, the two sides of a move."""
