"""The console's own pages: each parses its address, asks one read, and shows a template."""
