"""The bytes of a connection that have arrived and are not parsed yet, in slices that each take little time."""

# A slice of chunks of one byte takes 0.05 ms. Slices get longer while few frames are in them, as in large bodies.
SLICE_BYTES = 512
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
        """Whether bytes are left."""
        return self._at < len(self._data)

    @property
    def size(self) -> int:
        """The memory of the bytes, and of the objects that they will become: a request takes more than its bytes."""
        return 2 * len(self._data)

    def add(self, data: bytes) -> None:
        """Adds bytes that have arrived."""
        if not self._data:
            self._data = data
        elif data:
            self._data, self._at = self._data[self._at :] + data, 0

    def next(self) -> memoryview:
        """Removes and returns the next slice, to be parsed now."""
        begin, self._at = self._at, self._at + self._slice_bytes
        found = memoryview(self._data)[begin : self._at]
        if self._at >= len(self._data):
            self._data, self._at = b"", 0
        return found

    def adapt(self, frames: int) -> None:
        """Adapts the size of slices to the number of frames in the previous slice."""
        self._slice_bytes = min(2 * self._slice_bytes, MOST_SLICE_BYTES) if frames <= FEW_FRAMES else SLICE_BYTES
