"""What has come on a connection and is not parsed yet, cut into slices that each take little time."""

# A slice of chunks of one byte takes 0.2 ms. Slices get longer while few frames are in them, as in large bodies.
SLICE_BYTES = 2 * 1024
MOST_SLICE_BYTES = 32 * 1024
FEW_FRAMES = 16


class Unparsed:
    """The bytes of one connection that wait for the parser."""

    __slots__ = ("_at", "_data", "_slice_bytes")

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self._slice_bytes = SLICE_BYTES

    @property
    def is_left(self) -> bool:
        """Whether there are any."""
        return self._at < len(self._data)

    @property
    def size(self) -> int:
        """The memory that they take, with what is made of them: a request takes more than its bytes."""
        return 2 * len(self._data)

    def add(self, data: bytes) -> None:
        """More has come."""
        if not self._data:
            self._data = data
        elif data:
            self._data, self._at = self._data[self._at :] + data, 0

    def next(self) -> memoryview:
        """The next slice, which is parsed now."""
        begin, self._at = self._at, self._at + self._slice_bytes
        found = memoryview(self._data)[begin : self._at]
        if self._at >= len(self._data):
            self._data, self._at = b"", 0
        return found

    def adapt(self, frames: int) -> None:
        """The last slice had so many frames."""
        self._slice_bytes = min(2 * self._slice_bytes, MOST_SLICE_BYTES) if frames <= FEW_FRAMES else SLICE_BYTES
