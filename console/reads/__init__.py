"""What the pages show, read by the ORM: indexed columns or newest first, and never without a limit."""
