"""Notes for operators how endpoints answer: the last answer of each, and the number of consecutive void answers.

An endpoint that answers 200 without results is alive, so its circuit stays closed, although no check of its group
decides anything.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from store.db import connections
from store.db.statements import Statement
from transactions.checks import questions
from transactions.checks.questions import Result
from transactions.rows import ClaimedHalf
from webhooks.endpoint_answers import Answer

NOTE_ANSWERS = Statement(__file__, "note_answers", one=int)

# An answer that equals the previous answer is written at most once in this time.
NOTED_SECONDS = 10.0


@dataclass(slots=True)
class Noted:
    """The last written answer of an endpoint, the time of this write, and the number of void answers since then."""

    understood: bool
    at: float
    voids: int = 0


class NotedAnswers:
    """The last answers of endpoints that this process has seen, by endpoint."""

    def __init__(self) -> None:
        self._noted: dict[int, Noted] = {}

    async def note(self, endpoint_id: int, answer: Answer, halves: Sequence[ClaimedHalf]) -> None:
        """Notes a call that was answered 2xx. Other answers are failures, which the circuit counts."""
        if not (answer.asked and answer.ok):
            return
        found = questions.read(answer.body) if answer.status == 200 else {}
        results = [found[half.transaction_id] for half in halves if half.transaction_id in found]
        if self._is_due(endpoint_id, bool(results)):
            await self._write(endpoint_id, _text(answer, results), bool(results))

    def _is_due(self, endpoint_id: int, understood: bool) -> bool:
        """Whether to write the answer: it differs from the last written answer, or NOTED_SECONDS are over."""
        now = asyncio.get_running_loop().time()
        before = self._noted.get(endpoint_id)
        is_due = before is None or before.understood != understood or now - before.at >= NOTED_SECONDS
        noted = self._noted[endpoint_id] = Noted(understood, now if is_due or before is None else before.at)
        noted.voids = 0 if understood else (before.voids if before is not None else 0) + 1
        return is_due

    async def _write(self, endpoint_id: int, answer: str, understood: bool) -> None:
        noted = self._noted[endpoint_id]
        voids, noted.voids = noted.voids, 0
        parameters = {"id": endpoint_id, "answer": answer, "understood": understood, "voids": voids}
        await connections.read(NOTE_ANSWERS, parameters)


def _text(answer: Answer, results: list[Result]) -> str:
    """The answer in words: its states, or its beginning if it names none of the transactions."""
    if results:
        return f"{answer.status}, {', '.join(dict.fromkeys(result.state for result in results))}"
    return questions.void(answer) if answer.ok else f"{answer.reason} {questions.kept(answer.body)}".strip()
