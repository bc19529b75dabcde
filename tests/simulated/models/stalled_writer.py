"""Fence of a stalled writer: the session of a process that was stopped within a batch is ended, and its locks are free.

The steps, and what they stand for:
- a batch locks its queue and numbers its message: `store/sql/join_and_lock.sql`, `store/sql/send_messages.sql`
- the commit leaves: `store.db.pipeline.Pipeline.send`, `store.commit.stepwise.StepwiseWriter._commit`
- a look whether the server has said something before: `store.commit.stalled.require_silent`
- the server ends a session that waits for its process: `store.commit.stalled.end`,
  `store.commit.stalled.Watch._look`, `store/sql/end_stalled_writers.sql`, `store.segments.log.join`
- what the end of a session proves: `store.db.pipeline.Pipeline._failed`, `store.db.pipeline.Pipeline._break`,
  `store.commit.stalled.is_ended`
- a batch is done over, or its caller is answered: `store.commit.pipelined_writer.PipelinedWriter._failed`,
  `store.commit.pipelined_writer.PipelinedWriter._refuse`, `store.commit.stepwise.StepwiseWriter._write`

Bounds: one queue, a writer that may be stopped for good or for any time and does its batch over once, and a second
writer that waits for the queue. A session may be ended before its commit, as the commit arrives, and behind the
commit; what the server has said may be lost.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

ATTEMPTS = 2
STALLED, SECOND = "stalled writer", "second writer"
STORED, NOTHING, UNKNOWN = "stored", "nothing stored", "outcome unknown"


class State(NamedTuple):
    """The queue with (offset, writer) of each message; the stalled writer's client and session; the second writer."""

    queue: tuple[tuple[int, str], ...] = ()
    lock: str = ""
    client: str = "ready"
    session: str = ""
    offset: int = 0
    word: str = ""
    attempts: int = 1
    second: str = "waits"
    second_offset: int = 0
    answer: str = ""
    fault: str | None = None


@dataclass(frozen=True)
class StalledWriter:
    """The protocol; with one of its guards taken away a twin that must be refuted."""

    watches: bool = True
    ends_sessions: bool = True  # a lock is not taken from a session that lives
    is_silent: bool = True  # the server, as the commit leaves
    tells_ends_apart: bool = True  # of sessions before their commit and behind it
    admits_unknown: bool = True  # of a commit without an answer

    def first(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for name, following in (*self._client(state), *self._session(state)):
            yield f"{STALLED}: {name}", following
        for name, following in self._second(state):
            yield f"{SECOND} {name}", following

    def _client(self, state: State) -> Iterator[tuple[str, State]]:
        if state.client == "ready":
            yield "sends a part of its batch", state._replace(client="half sent", session="read", word="")
        elif state.client == "half sent":
            yield "is stopped for good", state._replace(client="stopped")
            if state.word == "there" and self.is_silent:
                yield "reads that its session was ended", self._proved(state)
            else:
                is_late = state.word == "there"
                yield "sends the commit", state._replace(client="sent late" if is_late else "sent")
        elif state.client.startswith("sent"):
            yield from self._outcome(state)

    def _outcome(self, state: State) -> Iterator[tuple[str, State]]:
        """What the client reads behind its commit: answers come before the word that ends a session."""
        if state.session == "committed":
            yield "reads the answer", self._answered(state, STORED)
        elif state.session == "ended behind the commit":
            yield "loses the connection", self._answered(state, UNKNOWN)
            following = self._answered(state, UNKNOWN) if self.tells_ends_apart else self._proved(state)
            yield "reads the end of its session behind the answers", following
        elif state.session == "ended":
            if state.client == "sent":
                yield "reads the end of its session before an answer", self._proved(state)
            yield "loses the connection", self._answered(state, UNKNOWN)

    def _proved(self, state: State) -> State:
        """Nothing was stored: the batch is done over, on a new connection."""
        if state.attempts < ATTEMPTS:
            return state._replace(client="ready", session="", word="", offset=0, attempts=state.attempts + 1)
        return self._answered(state, NOTHING)

    def _answered(self, state: State, answer: str) -> State:
        fault = state.fault
        if answer == UNKNOWN and state.client == "sent late":
            fault = "the outcome is called unknown, and the server had ended the session before the commit left"
        if answer == UNKNOWN and not self.admits_unknown:
            answer = NOTHING
        return state._replace(client="answered", session="", word="", offset=0, answer=answer, fault=fault)

    def _session(self, state: State) -> Iterator[tuple[str, State]]:
        if state.session == "read" and not state.lock:
            yield "its session locks the queue", state._replace(session="open", lock=STALLED, offset=len(state.queue))
        elif state.session == "open":
            if state.client == "sent":
                committed = state._replace(queue=(*state.queue, (state.offset, STALLED)), session="committed")
                yield "its session commits", committed._replace(lock="" if state.lock == STALLED else state.lock)
            if self.watches and self.ends_sessions:
                yield "its session is ended", state._replace(session="ended", lock="", word="on its way")
            elif self.watches and state.lock == STALLED:
                yield "its lock is given away", state._replace(lock="")
        elif state.session == "committed" and state.client == "sent":
            yield "its session is ended behind the commit", state._replace(session="ended behind the commit")
        if state.word == "on its way":
            yield "the word that its session was ended arrives", state._replace(word="there")

    def _second(self, state: State) -> Iterator[tuple[str, State]]:
        if state.second == "waits" and not state.lock:
            yield "locks the queue", state._replace(lock=SECOND, second="holds", second_offset=len(state.queue))
        elif state.second == "holds":
            queue = (*state.queue, (state.second_offset, SECOND))
            yield "commits", state._replace(queue=queue, lock="", second="done")

    def fault(self, state: State) -> str | None:
        writers = [writer for _, writer in state.queue]
        if state.fault is not None:
            return state.fault
        if [offset for offset, _ in state.queue] != list(range(len(state.queue))):
            return "two messages have one offset, or an offset is left out"
        if writers.count(STALLED) > 1:
            return "a message is stored twice"
        if state.answer == NOTHING and STALLED in writers:
            return "answered that nothing was stored, and the message is there"
        if state.answer == STORED and STALLED not in writers:
            return "answered as stored, and the message is not there"
        return None

    def is_settled(self, state: State) -> bool:
        return state.second == "done" and state.client in ("answered", "stopped") and not state.lock


MODEL = StalledWriter()
TWINS: Mapping[str, StalledWriter] = {
    "no process looks for stalled writers": StalledWriter(watches=False),
    "a lock is taken from a session that lives": StalledWriter(ends_sessions=False),
    "a commit leaves without a look at what the server has said": StalledWriter(is_silent=False),
    "each end of a session proves that nothing was stored": StalledWriter(tells_ends_apart=False),
    "a commit without an answer counts as not stored": StalledWriter(admits_unknown=False),
}
