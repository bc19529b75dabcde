"""Faults that are planted in the product's code, in memory: a scenario has to find each of them."""

import contextlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mqbroker_client.aio.coalescing import AsyncLane
from mqbroker_client.aio.running import AsyncRunner

from store.commit import moved, writer
from store.commit.pipelined import PipelinedBatch
from store.commit.pipelined_writer import PipelinedWriter
from store.commit.stepwise import StepwiseWriter
from store.db import routing
from store.notices.listeners import Listeners, Waiter
from store.process.answer_budget import Answers


@dataclass(frozen=True)
class Planted:
    """A fault in one method: the text of its source, and what stands there instead."""

    says: str
    scenario: str
    #: The class or the module that has the method or function.
    kind: Any
    method: str
    text: str
    instead: str
    #: A seed with which the fault shows itself soon.
    seed: int = 7

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        """The fault is there meanwhile."""
        whole = getattr(self.kind, self.method)
        source = textwrap.dedent(inspect.getsource(whole))
        if source.count(self.text) != 1:
            raise LookupError(f"{self.kind.__name__}.{self.method} does not have {self.text!r} once")
        found: dict[str, Any] = {}
        code = compile(source.replace(self.text, self.instead), f"<{self.says}>", "exec", dont_inherit=True)
        module = self.kind if inspect.ismodule(self.kind) else sys.modules[self.kind.__module__]
        exec(code, vars(module), found)  # the product's own text, changed in one place
        setattr(self.kind, self.method, found[self.method])
        try:
            yield
        finally:
            setattr(self.kind, self.method, whole)


PLANTED = (
    Planted(
        "an ordered send does not wait for one that was just left out",
        "ordered-sends",
        writer,
        "_follow",
        "await (asyncio.wait(before) if before else asyncio.sleep(0))",
        "if before: await asyncio.wait(before)",
        seed=150,
    ),
    Planted(
        "a batch that is sent again overtakes what is written stepwise",
        "ordered-sends",
        PipelinedBatch,
        "in_turn",
        "one.ordered and one.overtakes",
        "False",
        seed=3800,
    ),
    Planted(
        "a commit that was lost is told as stored nowhere",
        "pipelined-writer",
        PipelinedWriter,
        "_refuse",
        "not_sent if isinstance(problem, NotSent) else OutcomeUnknown(COMMIT_LOST)",
        "not_sent",
    ),
    Planted(
        "what never left is told as unknown",
        "pipelined-writer",
        PipelinedWriter,
        "_refuse",
        "not_sent if isinstance(problem, NotSent) else OutcomeUnknown(COMMIT_LOST)",
        "OutcomeUnknown(COMMIT_LOST)",
    ),
    Planted(
        "a server that hangs is not given up",
        "pipelined-writer",
        PipelinedWriter,
        "_give_up",
        "pipeline.close(problem)",
        "pass",
    ),
    Planted(
        "a batch of a rolled segment is forgotten",
        "pipelined-writer",
        PipelinedWriter,
        "_settle",
        "self._again.append(PipelinedBatch(left, batch.attempts + 1, only_free=batch.only_free))",
        "pass",
    ),
    Planted("no turn follows an answer", "pipelined-writer", PipelinedWriter, "_go_on", "self._turn()", "pass"),
    Planted(
        "a quiet turn does not look again", "pipelined-writer", PipelinedWriter, "_turn", "self._schedule()", "pass"
    ),
    Planted(
        "a connection that failed answers nobody",
        "pipelined-writer",
        PipelinedWriter,
        "_reconnect",
        "self._refuse_waiting(connections.away(problem, self._home))",
        "pass",
    ),
    Planted(
        "half of a batch that was halved is dropped",
        "pipelined-writer",
        PipelinedWriter,
        "_failed",
        "(batch.operations[:middle], batch.operations[middle:])",
        "(batch.operations[:middle],)",
    ),
    Planted(
        "a new connection has no limit in all",
        "pipelined-writer",
        PipelinedWriter,
        "_reconnect",
        "patience.begin(REQUEST_SECONDS, in_all=True)",
        "pass",
    ),
    Planted(
        "a stepwise commit that was lost is told as stored nowhere",
        "stepwise-writer",
        StepwiseWriter,
        "_commit",
        "raise OutcomeUnknown(COMMIT_LOST) from problem",
        "raise connections.away(problem) from problem",
    ),
    Planted(
        "a commit leaves though the server has ended the session",
        "stepwise-writer",
        StepwiseWriter,
        "_commit",
        "stalled.require_silent(connection)",
        "pass",
        seed=140,
    ),
    Planted(
        "a batch is halved though the server hangs",
        "stepwise-writer",
        StepwiseWriter,
        "_attempt",
        "if patience.current().is_over:",
        "if False:",
        seed=360,
    ),
    Planted(
        "one that spoils a batch has the others refused",
        "stepwise-writer",
        StepwiseWriter,
        "_isolate",
        "if len(pending) > 1:",
        "if len(pending) > 1 and False:",
    ),
    Planted(
        "a batch is answered before its commit",
        "both-writers",
        StepwiseWriter,
        "_attempt",
        "await self._commit(batch.connection)",
        "asyncio.get_running_loop().create_task(self._commit(batch.connection))",
    ),
    Planted(
        "what an older map has led to a cell is written there",
        "split-by-the-map-alone",
        PipelinedBatch,
        "under",
        "outdated(self.operations, version) if version else ()",
        "()",
    ),
    Planted(
        "the stepwise writer writes what an older map has led to a cell",
        "split-by-the-map-alone",
        moved,
        "open_to",
        "if version and outdated(",
        "if False and outdated(",
    ),
    Planted(
        "a cell that this process has not met counts as known",
        "split-by-the-map-alone",
        routing,
        "_version",
        "known.epochs.get(cell, 0)",
        "known.epochs.get(cell, epoch)",
        seed=38,
    ),
    Planted(
        "a caller that is cancelled does not hand on",
        "client-coalescing",
        AsyncLane,
        "ask",
        "return await alone(seconds)\n        finally:\n            self._hand_on()",
        "found = await alone(seconds)\n            self._hand_on()\n            return found\n"
        "        except ZeroDivisionError:\n            raise",
    ),
    Planted(
        "callers that go together have each other's answers",
        "client-coalescing",
        AsyncLane,
        "_answers",
        "return await self._together([each.call for each in together], seconds)",
        "return (await self._together([each.call for each in together], seconds))[::-1]",
    ),
    Planted(
        "what comes while others are answered is not handed on",
        "client-coalescing",
        AsyncLane,
        "_send",
        "        for _ in range(TURNS):\n            await asyncio.sleep(0)\n        self._hand_on()",
        "        empty = not self._waiting\n        for _ in range(TURNS):\n            await asyncio.sleep(0)\n"
        "        if empty:\n            self._under_way = False\n        else:\n            self._hand_on()",
    ),
    Planted(
        "a message in hand is not extended",
        "client-run",
        AsyncRunner,
        "_extend",
        "await keep(self._consumer, self._topic, deliveries, invisible_seconds=self._limits.invisible_seconds)",
        "del deliveries",
    ),
    Planted(
        "what was handled keeps its place", "client-run", AsyncRunner, "_handle", "self._hand.pop(task, None)", "pass"
    ),
    Planted(
        "a message that comes during a read wakes nobody",
        "listeners",
        Listeners,
        "wake_blocked",
        "self.missed = min(self.missed + messages, self.reading)",
        "pass",
    ),
    Planted(
        "a caller that hung up keeps the message that woke it",
        "listeners",
        Waiter,
        "wait",
        "if gone is not None and gone.done():",
        "if False:",
        seed=745,
    ),
    Planted(
        "a turn that came as its reader hung up is not given back",
        "answer-budget",
        Answers,
        "turn",
        "self.change(key, -LEAST_PAGE_BYTES)",
        "pass",
    ),
    Planted(
        "room that is free again wakes nobody",
        "answer-budget",
        Answers,
        "change",
        "if size < 0 and self._turns:",
        "if False:",
    ),
)
