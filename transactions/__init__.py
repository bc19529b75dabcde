"""The producer's side: half messages, the decisions that end them and the checks that ask about them."""
