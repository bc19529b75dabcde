"""The export: its moment, the pipeline from slices to files, and what is said meanwhile."""
