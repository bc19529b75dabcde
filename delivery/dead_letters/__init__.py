"""Dead letters: the messages that a group gave up, listed for calls and pages, and redriven."""
