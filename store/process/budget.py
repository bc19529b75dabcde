"""Budgets: the bytes of one kind that a process may hold. When a budget is used up, requests are refused."""

# One part in 8 of a budget is reserved for small requests, so that a few large ones cannot keep them out.
RESERVED_PART = 8
SMALL_BYTES = 64 * 1024


class Budget:
    """The bytes that requests hold, and their limit. A request that is the only one always gets its bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.held = 0

    def take(self, size: int, already: int = 0) -> bool:
        """Takes `size` bytes for a request that already holds `already` bytes; False when the budget is used up."""
        limit = self._limit
        if size + already > SMALL_BYTES:
            limit -= limit // RESERVED_PART
        if self.held > already and self.held + size > limit:
            return False
        self.held += size
        return True

    def give_back(self, size: int) -> None:
        """Returns bytes."""
        self.held -= size
