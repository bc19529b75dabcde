"""Scripts that write files of the repository from others; each has --check or a test that compares."""
