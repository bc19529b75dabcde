"""What a consumer reads: a receive, which hides what it hands out; its return; a pull, which keeps nothing; offsets."""
