"""Budgets: how many bytes of one kind a process holds at a time; when one is used up, requests are refused."""

# One part in so many of a budget is for small requests alone: a few large ones cannot keep them out.
RESERVED_PART = 8
SMALL_BYTES = 64 * 1024


class Budget:
    """Bytes that are held, and a limit for them. A request always gets its bytes when it is the only one."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.held = 0

    def take(self, size: int, already: int = 0) -> bool:
        """Takes `size` bytes for a request that holds `already` some; False when the budget is used up."""
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
