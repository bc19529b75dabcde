"""Scripts that generate files of the repository from other files; each has --check, or a test compares the files."""
