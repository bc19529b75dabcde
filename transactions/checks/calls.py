"""Calls of check-back: divides half messages into calls, chooses endpoints, and makes a refused call smaller."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from django.conf import settings

from store.messages.ids import new_id
from store.naming import namespaces
from transactions import endpoints, schedule
from transactions.checks import outcomes, questions
from transactions.checks.noted_answers import NotedAnswers
from transactions.checks.outcomes import Attempt
from transactions.checks.questions import Question
from transactions.checks.rows import ClaimedHalf
from transactions.rows import STATE_OF, CheckAnswer
from webhooks.callees import Callee
from webhooks.caller import Caller
from webhooks.endpoint_answers import Answer, sentence, way_out
from webhooks.slots import Slots

# The most bytes of encoded transactions in one call. A larger transaction gets a call of its own.
MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
# The bytes that an answer may have for each transaction, besides the limit of any answer.
ANSWER_BYTES = 512
# The outcome of a call that was not made.
UNREACHABLE = Answer(outcome="refused", asked=False, reason="No endpoint of the group may be called now.", latency_ms=0)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The half messages of one call, with or without their bodies, and the endpoints to ask, in order."""

    order: Sequence[Callee]
    halves: Sequence[ClaimedHalf]
    questions: Sequence[Question]
    brief: bool = False

    def payload(self, group_name: str) -> bytes:
        """The body of the call."""
        encoded = [one.brief if self.brief else one.whole for one in self.questions]
        return questions.payload(group_name, encoded)

    def smaller(self) -> list["Chunk"]:
        """The same half messages in two calls, or a single one without its bodies; empty if it cannot be smaller."""
        middle = len(self.halves) // 2
        if middle:
            return [
                replace(self, halves=self.halves[part], questions=self.questions[part])
                for part in (slice(middle), slice(middle, None))
            ]
        return [] if self.brief else [replace(self, brief=True)]


@dataclass(slots=True)
class _OpenChunk:
    """A chunk to which claimed half messages can still be added."""

    order: Sequence[Callee]
    halves: list[ClaimedHalf] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    size: int = 0

    def takes(self, question: Question) -> bool:
        """Whether one more question fits. The first question always fits, whatever its size."""
        fits = len(self.halves) < self.order[0].max_batch and self.size + len(question.whole) <= MAX_PAYLOAD_BYTES
        return fits or not self.halves

    def add(self, half: ClaimedHalf, question: Question) -> None:
        self.halves.append(half)
        self.questions.append(question)
        self.size += len(question.whole)


class Calls:
    """The calls of one process."""

    def __init__(self) -> None:
        self._caller: Caller | None = None
        self._slots = Slots()
        self._turns = count()
        self._answers = NotedAnswers()

    async def close(self) -> None:
        """Closes the connections."""
        if self._caller is not None:
            await self._caller.close()
            self._caller = None

    async def ask(self, group_name: str, halves: Sequence[ClaimedHalf], candidates: Sequence[Callee]) -> None:
        """Asks about claimed half messages and writes the outcomes."""
        encoded = await questions.encoded(halves)
        found = [(half, encoded.pop(half.transaction_id)) for half in halves if half.transaction_id in encoded]
        chunks = self._chunks(found, candidates)
        await asyncio.gather(*(self._ask_chunk(group_name, chunk) for chunk in chunks))

    def _chunks(self, found: Sequence[tuple[ClaimedHalf, Question]], candidates: Sequence[Callee]) -> list[Chunk]:
        """Divides half messages by the endpoints to ask, and then by the number and the bytes of a call."""
        made: list[_OpenChunk] = []
        last: dict[tuple[int, ...], _OpenChunk] = {}
        for half, question in found:
            order = self._order(half, candidates)
            key = tuple(endpoint.id for endpoint in order)
            if key not in last or not last[key].takes(question):
                last[key] = _OpenChunk(order)
                made.append(last[key])
            last[key].add(half, question)
        return [Chunk(one.order, one.halves, one.questions) for one in made]

    def _order(self, half: ClaimedHalf, candidates: Sequence[Callee]) -> list[Callee]:
        """The endpoints in order: the one that the sender named first, then the others in turn."""
        own = [endpoint for endpoint in candidates if endpoint.id == half.endpoint_id]
        others = [endpoint for endpoint in candidates if endpoint.id != half.endpoint_id]
        turn = (half.check_times if own else next(self._turns) // max(candidates[0].max_batch, 1)) % len(candidates)
        order = [*own, *others]
        return [*order[turn:], *order[:turn]]

    async def _ask_chunk(self, group_name: str, chunk: Chunk) -> None:
        """Makes a call, and writes the outcome for each of its half messages.

        A call that is too large for its endpoint is repeated as smaller calls, without counting a check for it.
        """
        endpoint, answer = await self._ask_in_turn(group_name, chunk)
        smaller = chunk.smaller() if answer.payload_refused else []
        if smaller:
            for part in smaller:
                await self._ask_chunk(group_name, part)
            return
        await asyncio.gather(*(outcomes.apply(_attempt(half, endpoint, answer)) for half in chunk.halves))
        await self._answers.note(endpoint.id, answer, chunk.halves)

    async def _ask_in_turn(self, group_name: str, chunk: Chunk) -> tuple[Callee, Answer]:
        """The outcome of the first endpoint that was reached, or else of the last endpoint that was tried."""
        endpoint, answer = chunk.order[0], UNREACHABLE
        payload = await namespaces.shown_to(group_name, chunk.payload(group_name))
        for endpoint in chunk.order:
            async with self._slots.hold(endpoint.id, endpoint.concurrency):
                if not await endpoints.health.may_call(endpoint):
                    continue
                answer = await self._call(endpoint, payload)
                can_be_smaller = answer.payload_refused and bool(chunk.smaller())
                await endpoints.health.note(endpoint, _alive(answer) if can_be_smaller else answer)
            if answer.asked or can_be_smaller:
                break
        return endpoint, answer

    async def _call(self, endpoint: Callee, payload: bytes) -> Answer:
        if self._caller is None:
            self._caller = Caller(settings.WEBHOOK_ALLOWED_NETWORKS)
        answer = await self._caller.post(
            endpoint.url,
            payload,
            endpoint.secrets,
            f"chk_{new_id()}",
            endpoint.timeout_seconds,
            endpoint.max_batch * ANSWER_BYTES,
            now=endpoint.now(),
        )
        advice = way_out(answer)
        return answer if advice is None else replace(answer, asked=False, reason=sentence(advice))


def _alive(answer: Answer) -> Answer:
    """The outcome for the endpoint's health if its server refused the size of a call: the server is alive."""
    return replace(answer, outcome="answered", status=200)


def _attempt(half: ClaimedHalf, endpoint: Callee, answer: Answer) -> Attempt:
    result = questions.read(answer.body).get(half.transaction_id) if answer.status == 200 else None
    state: CheckAnswer = "UNKNOWN"
    reason: str | None = answer.reason
    if result is not None:
        state, reason = STATE_OF[result.state], None if result.remark is None else sentence(result.remark)
    elif answer.ok and answer.asked:
        reason = questions.void(answer)
    elif answer.asked and answer.status is not None:
        reason = f"{answer.reason} {questions.kept(answer.body)}".strip()
    return Attempt(
        transaction_id=half.transaction_id,
        endpoint_id=endpoint.id,
        endpoint_url=endpoint.url,
        counted=answer.asked,
        answer=state if answer.asked else None,
        status=answer.status,
        latency_ms=round(answer.latency_ms),
        reason=reason,
        wait_seconds=schedule.interval_seconds(),
    )
