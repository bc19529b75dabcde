"""The producer's side: half messages, the ends that decide them and the checks that ask about them."""
