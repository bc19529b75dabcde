"""Cells: how operators add the databases of an installation, open them, look at them and move topics."""
