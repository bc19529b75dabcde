"""The lake: a table of Delta Lake that gets the committed messages while the broker runs, each once."""
