"""Exports as tables of Delta Lake and of Iceberg, in the files that an export has anyway."""
