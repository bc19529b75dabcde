"""The console's own pages: each view parses the address, reads the apps' numbers, and fills a template."""
