"""The console's own pages: each parses its address, asks the apps for what it shows, and fills a template."""
