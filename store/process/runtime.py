"""The runtime of a process: its state between two requests, made at its start and closed at its end.

Connections, writers, caches and background work are *parts*. No module makes one at import: the web's lifespan, the
worker's start and a test install a runtime, and each part is made at its first use there.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from store.errors import SystemBusy

Part = TypeVar("Part")


class Runtime:
    """The parts of one process, at most one of each kind."""

    def __init__(self) -> None:
        # Set for good once it closes: work that is still under way in a thread begins nothing that outlasts it.
        self.is_closing = False
        self._parts: dict[Callable[[], Any], Any] = {}
        self._closed: set[Callable[[], Any]] = set()
        self._making = threading.RLock()

    def part(self, kind: Callable[[], Part]) -> Part:
        """The part of this kind, a class or another factory; made now if it is the first use. From any thread.

        Raises SystemBusy for a part that was closed: work that comes so late would open connections that no one closes,
        and a pool that connects to a database which is gone keeps the event loop from ending.
        """
        part: Part | None = self._parts.get(kind)
        return self._make(kind) if part is None else part

    def _make(self, kind: Callable[[], Part]) -> Part:
        with self._making:
            if kind in self._closed:
                raise ending()
            if kind not in self._parts:
                self._parts[kind] = kind()
            part: Part = self._parts[kind]
        return part

    def forget(self) -> None:
        """Has the parts that have a `forget_all` drop what they have cached of the configuration. From any thread."""
        for part in list(self._parts.values()):
            forget_all = getattr(part, "forget_all", None)
            if forget_all is not None:
                forget_all()

    async def close(self, first: tuple[Callable[[], Any], ...] = ()) -> None:
        """Closes the parts that have a `close`: the kinds of `first` in their order, then the others, newest first.

        The other parts stay: work that is still under way in a thread goes on in the same event loop.
        """
        self.is_closing = True
        named = [kind for kind in first if kind in self._parts]
        for kind in [*named, *(kind for kind in reversed(list(self._parts)) if kind not in named)]:
            close = getattr(self._parts.get(kind), "close", None)
            if close is not None:
                await close()
                self._parts.pop(kind, None)
                self._closed.add(kind)


def ending() -> SystemBusy:
    """The refusal of work that comes after its runtime was closed."""
    return SystemBusy("This process is ending: nothing was stored, ask again.")


_current: Runtime | None = None
# The parts of that runtime: `part` is called several times for each request, and finds what is there without a call.
_found: dict[Callable[[], Any], Any] = {}


def install(runtime: Runtime | None) -> None:
    """Makes this the runtime of the process, or leaves the process without one."""
    global _current, _found
    _current, _found = runtime, {} if runtime is None else runtime._parts


def current() -> Runtime:
    """The runtime of the process.

    Raises RuntimeError where none is installed: a process that uses parts makes its runtime first.
    """
    if _current is None:
        raise RuntimeError("this process has no runtime: install one before it uses connections, writers or caches")
    return _current


def part(kind: Callable[[], Part]) -> Part:
    """The part of this kind of the process's runtime."""
    found: Part | None = _found.get(kind)
    return current().part(kind) if found is None else found


@contextlib.contextmanager
def installed(runtime: Runtime) -> Iterator[Runtime]:
    """Makes this the runtime of the process meanwhile, in place of the one before."""
    before = _current
    install(runtime)
    try:
        yield runtime
    finally:
        install(before)
