"""Cells: how operators add, open and inspect the databases of an installation, and move topics between them."""
