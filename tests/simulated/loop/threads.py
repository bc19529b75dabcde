"""Threads of a simulated run: greenlets whose waits are futures of the virtual loop, under the names of `threading`.

One thread runs at a time, until it waits. At a lock, an event or a queue it may also lose its turn, as the run chooses.
Code of the product that uses threads runs here unchanged: `replaced` gives its modules these names meanwhile.
"""

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType, SimpleNamespace, TracebackType
from typing import Any

from greenlet import GreenletExit, greenlet  # type: ignore[import-untyped]  # greenlet has no stubs

from tests.simulated.loop.virtual import VirtualLoop, loop, process

# How often a thread loses its turn where it could go on.
LOSES_TURN_ONE_IN = 8
SLEEP_OF_THE_MACHINE = time.sleep


class _Green(greenlet):  # type: ignore[misc]  # the same
    """The stack of one thread; its parent is that of the loop."""

    context: contextvars.Context
    of: VirtualLoop
    is_over = False


def wait(future: "asyncio.Future[Any]", seconds: float | None = None) -> bool:
    """Suspends the running thread until the future is done; False where it is not done after so many seconds."""
    me = greenlet.getcurrent()
    if not isinstance(me, _Green):
        raise TypeError("the loop itself may not wait as a thread does")
    if me.is_over:
        raise GreenletExit
    is_waiting = True

    def go_on(_: object = None) -> None:
        nonlocal is_waiting
        if is_waiting:
            is_waiting = False
            me.switch()

    timer = None if seconds is None else me.of.call_later(max(seconds, 0.0), go_on, context=me.context)
    future.add_done_callback(go_on, context=me.context)
    assert me.parent is not None
    me.parent.switch()
    if timer is not None:
        timer.cancel()
    return future.done()


def sleep(seconds: float) -> None:
    """As time.sleep, on the simulated clock. The machine's own threads, of which Spark leaves some, sleep as ever."""
    try:
        future = loop().create_future()
    except RuntimeError:
        SLEEP_OF_THE_MACHINE(seconds)
    else:
        wait(future, seconds)


def _turn() -> None:
    """Another thread may run here."""
    me = greenlet.getcurrent()
    if isinstance(me, _Green) and not me.is_over and me.of.chance.one_in(LOSES_TURN_ONE_IN):
        wait(me.of.create_future(), 0.0)


class Thread:
    """As threading.Thread; `ended` is done behind the end of its function."""

    def __init__(self, target: Callable[..., object], name: str = "", args: Any = (), daemon: bool = True) -> None:
        self.name = name
        self.ended: asyncio.Future[None] = loop().create_future()
        self._green = _Green(self._run)
        self._work = lambda: target(*args)

    def start(self) -> None:
        green, here = self._green, greenlet.getcurrent()
        green.of, green.context = loop(), contextvars.copy_context()
        green.gr_context = green.context
        green.parent = here.parent if isinstance(here, _Green) else here
        green.of.threads.append(self)
        green.of.call_soon(green.switch, context=green.context)

    def _run(self) -> None:
        try:
            if not self._green.is_over:
                self._work()  # type: ignore[no-untyped-call]  # a stand-in of a thread's function
        except Exception as problem:  # noqa: BLE001  whatever it is: no thread of the product ends by it
            self._green.of.unseen.append(f"{self.name}: {type(problem).__name__}({problem})")
        finally:
            if not self.ended.done():
                self.ended.set_result(None)

    @property
    def process(self) -> str:
        """The process that has begun it."""
        return self._green.context.get(process, "")

    def is_alive(self) -> bool:
        return not self.ended.done()

    def join(self, timeout: float | None = None) -> None:
        if self.is_alive():
            wait(self.ended, timeout)

    def end(self) -> None:
        """Ends the thread where it waits, behind the end of the run."""
        self._green.is_over = True
        if self._green:
            self._green.throw(GreenletExit)


class Lock:
    """As threading.Lock."""

    def __init__(self) -> None:
        self._is_held = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        _turn()
        until = None if timeout < 0 else time.monotonic() + timeout
        while self._is_held:
            left = None if until is None else until - time.monotonic()
            if not blocking or (left is not None and left <= 0):
                return False
            free: asyncio.Future[None] = loop().create_future()
            self._waiting.append(free)
            wait(free, left)
        self._is_held = True
        return True

    def release(self) -> None:
        self._is_held = False
        _wake(self._waiting)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _wake(waiting: "deque[asyncio.Future[None]]") -> None:
    """All who wait look again."""
    while waiting:
        one = waiting.popleft()
        if not one.done():
            one.set_result(None)


class Condition(Lock):
    """As threading.Condition."""

    def __init__(self) -> None:
        super().__init__()
        self._hearing: deque[asyncio.Future[None]] = deque()

    def wait_for(self, holds: Callable[[], Any], timeout: float | None = None) -> Any:
        until = None if timeout is None else time.monotonic() + timeout
        while not (found := holds()):
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return holds()
            told: asyncio.Future[None] = loop().create_future()
            self._hearing.append(told)
            self.release()
            try:
                wait(told, left)
            finally:
                self.acquire()
        return found

    def notify_all(self) -> None:
        _wake(self._hearing)


class Event:
    """As threading.Event; the loop may set it, too."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        _wake(self._waiting)
        _turn()

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            told: asyncio.Future[None] = loop().create_future()
            self._waiting.append(told)
            wait(told, timeout)
        return self._is_set


class SimpleQueue:
    """As queue.SimpleQueue."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)
        _wake(self._waiting)
        _turn()

    def get(self) -> Any:
        _turn()
        while not self._items:
            told: asyncio.Future[None] = loop().create_future()
            self._waiting.append(told)
            wait(told)
        return self._items.popleft()

    def empty(self) -> bool:
        return not self._items

    # A class is subscripted where a module annotates what it holds.
    __class_getitem__ = classmethod(lambda kind, _: kind)


THREADING = SimpleNamespace(
    Thread=Thread,
    Event=Event,
    Condition=Condition,
    Lock=Lock,
    current_thread=greenlet.getcurrent,
    # No thread of a run is the one that may handle signals.
    main_thread=lambda: None,
)
NAMES = {"threading": THREADING, "queue": SimpleNamespace(SimpleQueue=SimpleQueue), "Lock": Lock}


@contextmanager
def replaced(*modules: ModuleType) -> Iterator[None]:
    """Within the block these modules have the threads of the run in place of the machine's, and its sleep."""
    with ExitStack() as stack:
        for module in (*modules, time):
            names = {"sleep": sleep} if module is time else NAMES
            for name in names.keys() & vars(module).keys():
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, names[name])
        try:
            yield
        finally:
            for thread in loop().threads:
                thread.end()
