"""A send: one message, or a batch that is all or nothing, stored and published in one write; and its answer."""
