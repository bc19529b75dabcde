"""Calls of check-back: which halves go into one, whom it asks, and what is done when a server finds it too large."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from django.conf import settings

from store.db.connections import Row
from store.db.uuid7 import new_id
from transactions import endpoints
from transactions.checks import outcomes, questions
from transactions.checks.outcomes import Attempt
from transactions.checks.questions import Question
from webhooks.answers import Answer, sentence, way_out
from webhooks.caller import Caller
from webhooks.health import Callee
from webhooks.slots import Slots

# Transactions of a call, encoded; a larger one goes by itself.
MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
# What the answer to one transaction may take beyond what any answer may.
ANSWER_BYTES = 512


@dataclass(frozen=True, slots=True)
class Chunk:
    """Halves that are asked about in one call, with or without their bodies, and the endpoints to ask, in order."""

    order: Sequence[Callee]
    halves: Sequence[Row]
    questions: Sequence[Question]
    brief: bool = False

    def payload(self, group_name: str) -> bytes:
        """What is sent."""
        encoded = [one.brief if self.brief else one.whole for one in self.questions]
        return questions.payload(group_name, encoded)

    def smaller(self) -> list["Chunk"]:
        """The same in two calls, or for a single half without its bodies; none when it is as small as can be."""
        middle = len(self.halves) // 2
        if middle:
            return [
                replace(self, halves=self.halves[part], questions=self.questions[part])
                for part in (slice(middle), slice(middle, None))
            ]
        return [] if self.brief else [replace(self, brief=True)]


class Calls:
    """The calls of one process."""

    def __init__(self) -> None:
        self._caller: Caller | None = None
        self._slots = Slots()
        self._turns = count()

    async def close(self) -> None:
        """Closes the connections."""
        if self._caller is not None:
            await self._caller.close()
            self._caller = None

    async def ask(self, group_name: str, halves: Sequence[Row], candidates: Sequence[Callee]) -> None:
        """Asks about claimed halves and writes what came of it."""
        asked = await questions.encoded(halves)
        found = [(half, asked.pop(half.transaction_id)) for half in halves if half.transaction_id in asked]
        chunks = self._chunks(found, candidates)
        await asyncio.gather(*(self._ask_chunk(group_name, chunk) for chunk in chunks))

    def _chunks(self, found: Sequence[tuple[Row, Question]], candidates: Sequence[Callee]) -> list[Chunk]:
        """Halves that go to one endpoint in one call, each with the endpoints to turn to when it can't be reached."""
        parts: list[tuple[list[Callee], list[tuple[Row, Question]]]] = []
        open_parts: dict[tuple[int, ...], tuple[list[tuple[Row, Question]], int]] = {}
        for half, question in found:
            order = self._order(half, candidates)
            key = tuple(endpoint.id for endpoint in order)
            part, size = open_parts.get(key, ([], 0))
            if not part or len(part) >= order[0].max_batch or size + len(question.whole) > MAX_PAYLOAD_BYTES:
                part, size = [], 0
                parts.append((order, part))
            part.append((half, question))
            open_parts[key] = (part, size + len(question.whole))
        return [Chunk(order, [half for half, _ in part], [question for _, question in part]) for order, part in parts]

    def _order(self, half: Row, candidates: Sequence[Callee]) -> list[Callee]:
        """The sender's own endpoint first, then the others in turn."""
        own = [endpoint for endpoint in candidates if endpoint.id == half.endpoint_id]
        others = [endpoint for endpoint in candidates if endpoint.id != half.endpoint_id]
        turn = (half.check_times if own else next(self._turns) // max(candidates[0].max_batch, 1)) % len(candidates)
        order = [*own, *others]
        return [*order[turn:], *order[:turn]]

    async def _ask_chunk(self, group_name: str, chunk: Chunk) -> None:
        """A call that is too large for its endpoint is made again smaller: nothing is counted for it."""
        endpoint, answer = await self._ask_in_turn(group_name, chunk)
        smaller = chunk.smaller() if answer.payload_refused else []
        if smaller:
            for part in smaller:
                await self._ask_chunk(group_name, part)
            return
        await asyncio.gather(*(outcomes.apply(_attempt(half, endpoint, answer)) for half in chunk.halves))

    async def _ask_in_turn(self, group_name: str, chunk: Chunk) -> tuple[Callee, Answer]:
        """The answer of the first endpoint that was asked, or of the last one that was tried."""
        endpoint, answer = chunk.order[0], endpoints.unreachable()
        payload = chunk.payload(group_name)
        for endpoint in chunk.order:
            async with self._slots.hold(endpoint.id, endpoint.concurrency):
                if not await endpoints.may_call(endpoint):
                    continue
                answer = await self._call(endpoint, payload)
                can_be_smaller = answer.payload_refused and bool(chunk.smaller())
                await endpoints.note(endpoint, _alive(answer) if can_be_smaller else answer)
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
        )
        advice = way_out(answer)
        return answer if advice is None else replace(answer, asked=False, reason=sentence(advice))


def _alive(answer: Answer) -> Answer:
    """What a refused size says of the endpoint's health: it is there, and is asked again at once."""
    return replace(answer, outcome="answered", status=200)


def _attempt(half: Row, endpoint: Callee, answer: Answer) -> Attempt:
    result = questions.read(answer.body).get(half.transaction_id) if answer.status == 200 else None
    state: str = "UNKNOWN"
    reason: str | None = answer.reason
    if result is not None:
        state, reason = result.state, None if result.remark is None else sentence(result.remark)
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
        wait_seconds=float(settings.TRANSACTION_CHECK_INTERVAL_SECONDS),
    )
