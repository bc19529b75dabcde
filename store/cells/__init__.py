"""Cells, the databases of one installation: their list, copies of the configuration, repairs, and moves of topics."""
