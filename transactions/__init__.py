"""The producer's side: half messages, the ends that decide them, the checks that ask producers, and outboxes."""
