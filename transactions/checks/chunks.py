"""Chunks of check-back: divides claimed half messages into calls by the endpoints to ask and the size of a call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from transactions.checks import questions
from transactions.checks.questions import Question
from transactions.rows import ClaimedHalf
from webhooks.callees import Callee

# The most bytes of encoded transactions in one call. A larger transaction gets a separate call.
MAX_PAYLOAD_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """The half messages of one call, with or without their bodies, and the endpoints to ask, in order."""

    order: Sequence[Callee]
    halves: Sequence[ClaimedHalf]
    questions: Sequence[Question]
    brief: bool = False

    def payload(self, group_name: str) -> bytes:
        """The body of the HTTP call."""
        encoded = [one.brief if self.brief else one.whole for one in self.questions]
        return questions.payload(group_name, encoded)

    def smaller(self) -> list["Chunk"]:
        """The half messages in two calls; a single one without its bodies. No call if it cannot be made smaller."""
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
        """Whether one more question fits into the chunk. The first question always fits, whatever its size."""
        fits = len(self.halves) < self.order[0].max_batch and self.size + len(question.whole) <= MAX_PAYLOAD_BYTES
        return fits or not self.halves

    def add(self, half: ClaimedHalf, question: Question) -> None:
        self.halves.append(half)
        self.questions.append(question)
        self.size += len(question.whole)


async def divided(halves: Sequence[ClaimedHalf], candidates: Sequence[Callee], turns: Iterator[int]) -> list[Chunk]:
    """The calls for claimed half messages, by the endpoints to ask, and then by the number and the bytes of a call.

    `turns` numbers the half messages whose sender named no endpoint.
    """
    encoded = await questions.encoded(halves)
    made: list[_OpenChunk] = []
    last: dict[tuple[int, ...], _OpenChunk] = {}
    for half in halves:
        if (question := encoded.pop(half.transaction_id, None)) is None:
            continue
        order = _order(half, candidates, turns)
        key = tuple(endpoint.id for endpoint in order)
        if key not in last or not last[key].takes(question):
            last[key] = _OpenChunk(order)
            made.append(last[key])
        last[key].add(half, question)
    return [Chunk(one.order, one.halves, one.questions) for one in made]


def _order(half: ClaimedHalf, candidates: Sequence[Callee], turns: Iterator[int]) -> list[Callee]:
    """The endpoints in the order of the tries: the endpoint that the sender named, then the others in turn."""
    own = [endpoint for endpoint in candidates if endpoint.id == half.endpoint_id]
    others = [endpoint for endpoint in candidates if endpoint.id != half.endpoint_id]
    turn = (half.check_times if own else next(turns) // max(candidates[0].max_batch, 1)) % len(candidates)
    order = [*own, *others]
    return [*order[turn:], *order[:turn]]
