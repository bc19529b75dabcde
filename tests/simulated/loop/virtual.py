"""An event loop without a machine: its clock is a number, and a `Chance` says which ready callback runs next.

The time stands still while a callback is ready, and jumps to the next timer when none is. There is no I/O: a simulated
server calls the reader of a file descriptor by `readable`. Callbacks belong to the process whose code scheduled them,
by a context variable; the callbacks of a process that is stopped wait until it is resumed, as with SIGSTOP.
"""

import asyncio
import contextvars
import heapq
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar, TypeVarTuple

from tests.simulated.loop.chance import Chance

Result = TypeVar("Result")
Given = TypeVarTuple("Given")

# The process whose code runs; empty for the world around: servers, networks, people.
process: contextvars.ContextVar[str] = contextvars.ContextVar("simulated_process", default="")

# A run of more steps never ends.
MOST_STEPS = 40_000
# Each callback takes this time, so that no two of them run at the same moment.
STEP_SECONDS = 1e-6
# The clock of a machine begins anywhere.
BEGINNING = 1_000.0


class Broken(AssertionError):
    """A property does not hold. The part before the first colon names the property."""


def require(holds: object, broken: str, *details: object) -> None:
    """Raises Broken unless something holds."""
    if not holds:
        raise Broken(": ".join([broken, *map(str, details)]))


class VirtualLoop(asyncio.AbstractEventLoop):
    """The event loop of one simulated run, and the list of what happened in it where a `trace` is wanted."""

    def __init__(self, chance: Chance, trace: list[str] | None = None, *, in_turn: bool = False) -> None:
        self.chance = chance
        self.trace = trace
        #: Whether the callbacks of one process run in the order in which they became ready, as asyncio runs them.
        self._in_turn = in_turn
        self.steps = 0
        self._now = BEGINNING
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_count = 0
        self._readers: dict[int, asyncio.Handle] = {}
        self._writers: dict[int, asyncio.Handle] = {}
        self._stopped: set[str] = set()
        self._tasks: list[asyncio.Task[Any]] = []
        #: The threads of the run, where it has some.
        self.threads: list[Any] = []
        #: Called when code of another process than before runs next, with the process.
        self.switched: Callable[[str], None] | None = None
        self._running = ""
        #: Exceptions that no task and no caller has seen.
        self.unseen: list[str] = []

    def work(self, seconds: float) -> None:
        """The running callback takes this time of the processor: timers that end meanwhile are late."""
        self._now += seconds

    # What asyncio and the product call.

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> asyncio.Task[Any]:
        # asyncio's own names count all tasks of this Python.
        name = name or f"task {len(self._tasks)}"
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    def call_soon(self, callback: Callable[[*Given], object], *args: *Given, context: Any = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Given], object], *args: *Given, context: Any = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[*Given], object], *args: *Given, context: Any = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Given], object], *args: *Given, context: Any = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timer_count += 1
        heapq.heappush(self._timers, (when, self._timer_count, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is passed over when its time has come."""

    def add_reader(self, fd: Any, callback: Callable[[*Given], Any], *args: *Given) -> None:
        self._readers[fd] = asyncio.Handle(callback, args, self, None)

    def remove_reader(self, fd: Any) -> bool:
        return self._readers.pop(fd, None) is not None

    def add_writer(self, fd: Any, callback: Callable[[*Given], Any], *args: *Given) -> None:
        self._writers[fd] = asyncio.Handle(callback, args, self, None)

    def remove_writer(self, fd: Any) -> bool:
        return self._writers.pop(fd, None) is not None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        # Of a task that nobody awaits `_unwatched` speaks, at a moment that no collector of garbage chooses.
        if problem is not None and "never retrieved" not in str(context.get("message")):
            self.unseen.append(f"{type(problem).__name__}({problem})")

    def run_in_executor(self, executor: Any, func: Callable[[*Given], Result], *args: *Given) -> asyncio.Future[Result]:
        """The function runs in one piece: another thread could do nothing here that a callback cannot."""
        future: asyncio.Future[Result] = self.create_future()

        def run() -> None:
            if future.done():
                return
            try:
                found = func(*args)
            except Exception as problem:  # noqa: BLE001  as an executor does, it hands on whatever was raised
                future.set_exception(problem)
            else:
                future.set_result(found)

        self.call_later(0.001, run)
        return future

    # What a scenario calls.

    def note(self, *words: object) -> None:
        """Adds a line to the trace."""
        if self.trace is not None:
            self.trace.append(f"{self._now - BEGINNING:11.6f} {process.get() or 'world':7} {' '.join(map(str, words))}")

    def readable(self, fd: int) -> None:
        """Something has come for the reader of a file descriptor."""
        self._call(self._readers, fd)

    def writable(self, fd: int) -> None:
        """A file descriptor takes more; its writer is called."""
        self._call(self._writers, fd)

    def _call(self, watched: dict[int, asyncio.Handle], fd: int) -> None:
        handle = watched.get(fd)
        if handle is not None:
            self._ready.append(asyncio.Handle(handle._callback, handle._args, self, handle._context))  # type: ignore[attr-defined]  # asyncio's stubs hide what a handle is made of

    def stop_process(self, name: str) -> None:
        """The process runs no more, as with SIGSTOP."""
        self.note("stops", name)
        self._stopped.add(name)

    def resume_process(self, name: str) -> None:
        """The process goes on, with all that has become due meanwhile."""
        self.note("resumes", name)
        self._stopped.discard(name)

    def is_stopped(self, name: str) -> bool:
        """Whether a process was stopped and not resumed."""
        return name in self._stopped

    def of_process(self, name: str, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """A task of a process: all that it begins belongs to the process, too."""
        context = contextvars.copy_context()
        context.run(process.set, name)
        return self.create_task(work, context=context)

    def unfinished(self) -> list[str]:
        """The names of the tasks that have not ended, but that which asks."""
        current = asyncio.current_task(self)
        return [task.get_name() for task in self._tasks if not task.done() and task is not current]

    def _unwatched(self) -> list[str]:
        """The tasks that ended with an exception which nobody has asked for."""
        return [
            f"{task.get_name()} {task.exception()!r}"
            for task in self._tasks
            if task.done() and not task.cancelled() and task._log_traceback and task.exception()
        ]

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs a scenario to its end, then ends what it has left. Raises Broken where it cannot come to its end."""
        before = asyncio._get_running_loop()  # pytest-asyncio may have one
        asyncio._set_running_loop(self)
        try:
            main: asyncio.Task[Result] = self.create_task(work, name="scenario")
            self._run_until(main)
            found = main.result()
            self.unseen += self._unwatched()
            return found
        finally:
            self._end_all()
            asyncio._set_running_loop(before)

    def _run_until(self, main: asyncio.Task[Any]) -> None:
        while not main.done():
            if not self._step():
                raise Broken(f"something waits for ever: {', '.join(self.unfinished())}")
            if self.steps > MOST_STEPS:
                raise Broken("the run does not end")

    def _end_all(self) -> None:
        self.trace = None
        self._stopped.clear()
        for _ in range(5):
            left = [task for task in self._tasks if not task.done()]
            for task in left:
                task.cancel()
            most = self.steps + MOST_STEPS
            while self._ready and self.steps < most:
                self._step()
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.exception()

    def _step(self) -> bool:
        """One callback; False where nothing can happen any more."""
        self.steps += 1
        self._now += STEP_SECONDS
        timers, ready = self._timers, self._ready
        while timers and timers[0][0] <= self._now:
            ready.append(heapq.heappop(timers)[2])
        if self._stopped:
            return self._step_of_others()
        if not ready:
            return self._jump()
        self._run(ready.pop(self._next_of(range(len(ready)))))
        return True

    def _step_of_others(self) -> bool:
        places = [place for place, handle in enumerate(self._ready) if _process_of(handle) not in self._stopped]
        if not places:
            return self._jump()
        self._run(self._ready.pop(self._next_of(places)))
        return True

    def _next_of(self, places: Sequence[int]) -> int:
        """The place of the callback that runs next, among these ready ones."""
        place = places[self.chance.turn(len(places)) if len(places) > 1 else 0]
        if not self._in_turn:
            return place
        process = _process_of(self._ready[place])
        return next(one for one in places if _process_of(self._ready[one]) == process)

    def _jump(self) -> bool:
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers:
            return False
        self._now = max(self._now, timers[0][0])
        return True

    def _run(self, handle: asyncio.Handle) -> None:
        if handle.cancelled():
            return
        if self.switched is not None and (whose := _process_of(handle)) != self._running:
            self._running = whose
            self.switched(whose)
        handle._run()


def _process_of(handle: asyncio.Handle) -> str:
    context: contextvars.Context = handle._context  # type: ignore[attr-defined]  # asyncio's stubs hide what a handle is made of
    found: str = context.get(process, "")
    return found


def loop() -> VirtualLoop:
    """The loop of the run that is under way."""
    running = asyncio.get_running_loop()
    assert isinstance(running, VirtualLoop)
    return running
