"""Reading: receives, which hide the messages that they hand out; returns; pulls, which keep no state; offsets."""
