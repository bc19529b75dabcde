"""The export: its moment, the pipeline from slices to files, and the progress that it prints."""
