"""The control's rows of a move and of the map, in place of the ORM, for the real run of a move."""

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from console.cells import steps
from console.cells.errors import CellIllegal
from console.cells.models import Move
from tests.simulated.loop import threads
from tests.simulated.loop.virtual import loop, process


class Control:
    """The control's rows: the move, its holder, and the map. What a transaction writes is there at its commit."""

    def __init__(self, divide: Callable[[], None], staying: list[int]) -> None:
        self._divide = divide
        self._staying = staying
        self.step, self.holder, self.running, self.error = steps.PREPARED, uuid4(), True, ""
        # Of each process that is in a transaction.
        self._writes: dict[str, list[Callable[[], None]]] = {}

    def move(self) -> Move:
        """The row as a run reads it."""
        names = {"source_id": 0, "source_name": "c0", "target_id": 1, "target_name": "c1", "topic_ids": [1]}
        return Move(id=1, step=self.step, holder=self.holder, target_url="1", position="0/1", **names)

    @contextlib.contextmanager
    def atomic(self) -> Iterator[None]:
        writes = self._writes[process.get()] = []
        try:
            yield
            threads.sleep(0.001)
            for write in writes:
                write()
        finally:
            del self._writes[process.get()]

    # The functions of `moves`.

    def note(self, move: Move, step: str, _: object, **fields: Any) -> None:
        self._update(move, lambda: setattr(self, "step", step))
        for name, value in {"step": step, **fields}.items():
            setattr(move, name, value)

    def end(self, move: Move, step: str, _: object, error: str = "") -> None:
        self._update(move, lambda: vars(self).update(step=step, running=False, error=error))
        move.step = step

    def _update(self, move: Move, write: Callable[[], None]) -> None:
        self.require_holder(move)

        def noted() -> None:
            self._require(move)
            write()
            loop().note("step", self.step)

        writes = self._writes.get(process.get())
        if writes is None:
            noted()
        else:
            writes.append(noted)

    def require_holder(self, move: Move) -> None:
        threads.sleep(0.001)
        self._require(move)

    def _require(self, move: Move) -> None:
        if self.holder != move.holder or not self.running:
            raise CellIllegal("Another run of the command has taken over the move.")

    def note_error(self, move: Move, error: str) -> None:
        threads.sleep(0.001)

    def taken_over(self) -> Move:
        threads.sleep(0.001)
        if not self.running:
            raise CellIllegal("No move of topics is under way.")
        self.holder = uuid4()
        return self.move()

    # The map.

    def update(self, **_: object) -> None:
        self._writes[process.get()].append(self._divide)

    def names(self) -> dict[str, Any]:
        """What stands in the modules of a move in place of the ORM, by name."""
        rows = SimpleNamespace(get=lambda **_: self, create=lambda **_: None, filter=lambda **_: self)
        topics = SimpleNamespace(filter=lambda **_: SimpleNamespace(values_list=lambda *_, **__: self._staying))
        nothing = ("write_behind_the_fence", "of_fence", "of_configuration")
        return {
            "moves": self,
            "transaction": SimpleNamespace(atomic=self.atomic),
            "copies": SimpleNamespace(hold=lambda: None),
            "Cell": SimpleNamespace(objects=rows),
            "Topic": SimpleNamespace(objects=rows),
            "topic_registry": SimpleNamespace(of_users=lambda: topics),
            "plans": SimpleNamespace(require_untorn=lambda *_: None, queues_of=lambda *_: []),
            "registry": SimpleNamespace(url_of=lambda _: "0", announce=lambda: None, every=list, repair=None),
            "purging": SimpleNamespace(
                own_session=lambda: 0,
                of_broker=list,
                of_timers=lambda _: 0,
                of_letters=lambda _: 0,
                **dict.fromkeys(nothing, lambda *_: None),
            ),
        }
