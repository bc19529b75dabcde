"""Check-back: asks producers about half messages that are due, in one task for each producer group.

1. Each group with due half messages and a callable endpoint gets a task, MAX_GROUPS at once. So a slow or failing
   endpoint delays only the checks of its own group.
2. **Claim.** The task claims half messages of its group (`claims`), and continues while more become due before the next
   tick of beat.
3. **Ask.** The claimed half messages are divided into calls (`chunks`), and each call asks the first of its endpoints
   that can be reached.
4. **Write.** The group commit writes the outcome of each half message (`outcomes`).
"""

import asyncio
import contextlib
from dataclasses import dataclass, replace
from itertools import count

import structlog
from django.conf import settings

from store.errors import Refusal
from store.messages.ids import new_id
from store.naming import namespaces
from store.process import runtime
from transactions import endpoints
from transactions.checks import chunks, claims, outcomes
from transactions.checks.chunks import Chunk
from transactions.checks.noted_answers import NotedAnswers
from webhooks.callees import Callee
from webhooks.caller import Caller
from webhooks.endpoint_answers import Answer, sentence, way_out
from webhooks.slots import Allowance, Slots

logger = structlog.stdlib.get_logger(__name__)

# Beat ticks every two seconds. A task waits for half messages that become due before the next tick, so that a check
# comes in time: without this wait an interval of 2 s became 4 s.
AHEAD_SECONDS = 2.0
# How long the broker waits between two claims of a group whose half messages become due one by one, so that each claim
# takes several.
PAUSE_SECONDS = 0.2
MAX_GROUPS = 500
# The longest time of a group's task while other groups wait for one of the MAX_GROUPS tasks.
TURN_SECONDS = 10.0
# The claims of a group at once: while one claim's outcomes are written, the endpoint answers calls of another claim.
CLAIMS_AT_ONCE = 2
# The calls that each slot of an endpoint makes one after another for a claim: enough to keep the endpoint busy.
ROUNDS = 3
# The most bytes of bodies and properties in all claims of this process at once. Encoded they usually have a third more
# bytes, as text of control characters six times as many.
MAX_BYTES_AT_ONCE = 32 * 1024 * 1024
# How long a claim waits until other claims free their bytes; after this time its half messages wait for the end of the
# claim.
BYTES_WAIT_SECONDS = 10.0
# The bytes that an answer may have for each transaction, besides the limit of any answer.
ANSWER_BYTES = 512
# The outcome that stands for a call that was not made.
UNREACHABLE = Answer(outcome="refused", asked=False, reason="No endpoint of the group may be called now.", latency_ms=0)


@dataclass(slots=True)
class Group:
    """A producer group with due half messages."""

    id: int
    name: str
    #: The time at which the task began, by the event loop's clock.
    began: float


class Checker:
    """The checks of one process: at most one task for each producer group."""

    def __init__(self, max_groups: int = MAX_GROUPS) -> None:
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._max_groups = max_groups
        self._last_group_id = 0
        self._crowded = False
        self._bodies = Allowance(MAX_BYTES_AT_ONCE)
        self._turns = count()
        self._slots = Slots()
        self._answers = NotedAnswers()
        self._caller: Caller | None = None

    @property
    def groups(self) -> set[int]:
        """The ids of the groups that have a task now."""
        return set(self._asking)

    async def run(self, late_seconds: float = -AHEAD_SECONDS) -> None:
        """Starts a task for each group without a task and with a half message that is late by `late_seconds`.

        Negative seconds mean a half message that becomes due within this time; the task then waits for it. The group
        after the one that was started last comes first, so that every group has its turn.
        """
        free = self._max_groups - len(self._asking)
        rows = await claims.due_groups(late_seconds, free, self._asking, self._last_group_id) if free else ()
        self._crowded = len(rows) == free
        for row in rows:
            self._last_group_id = row.group_id
            if row.group_id not in self._asking:
                group = Group(row.group_id, row.name, asyncio.get_running_loop().time())
                self._asking[group.id] = asyncio.create_task(self._check(group), name=f"check {group.name}")

    async def close(self) -> None:
        """Ends the tasks. Half messages that they claimed are checked again after the end of the claim."""
        for task in list(self._asking.values()):
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        self._asking.clear()
        if self._caller is not None:
            await self._caller.close()
            self._caller = None

    async def _check(self, group: Group) -> None:
        """Claims and asks until no half message is due before the next tick, or no endpoint can be called."""
        loop = asyncio.get_running_loop()
        next_tick = loop.time() + AHEAD_SECONDS
        try:
            with contextlib.suppress(Refusal):
                while all(await asyncio.gather(*(self._claim(group) for _ in range(CLAIMS_AT_ONCE)))):
                    seconds = await claims.seconds_to_next(group.id)
                    if seconds is None or loop.time() + seconds > next_tick:
                        break
                    await asyncio.sleep(max(seconds, PAUSE_SECONDS))
        finally:
            self._asking.pop(group.id, None)

    async def _claim(self, group: Group) -> bool:
        """Claims due half messages and asks about them, claim after claim. True when none is due any more."""
        most = claims.MAX_CLAIM
        try:
            while candidates := await endpoints.callable_endpoints(group.id):
                worth = sum(one.concurrency * one.max_batch for one in candidates) * ROUNDS
                async with claims.claimed(group.id, min(worth, most)) as halves:
                    if not halves:
                        return True
                    async with self._bodies.hold(halves[0].claimed_bytes, BYTES_WAIT_SECONDS):
                        calls = await chunks.divided(halves, candidates, self._turns)
                        await asyncio.gather(*(self._ask(group.name, call) for call in calls))
                if self._crowded and asyncio.get_running_loop().time() > group.began + TURN_SECONDS:
                    return False
                # A claim takes few large half messages, so the next claim locks at most twice as many to read their
                # sizes.
                most = min(2 * len(halves), claims.MAX_CLAIM)
        except Refusal as refusal:
            logger.warning("checks stopped", group=group.name, reason=refusal.detail)
        except TimeoutError:
            logger.warning(
                "checks wait for the end of their claim: the bodies of other checks fill the budget", group=group.name
            )
        except Exception:
            logger.exception("checks failed", group=group.name)
        return False

    async def _ask(self, group_name: str, chunk: Chunk) -> None:
        """Asks the first endpoint that can be reached, and writes the outcome for each half message of the call.

        A call that is too large for its endpoint is repeated as smaller calls; the large call counts as no check.
        """
        endpoint, answer, smaller = chunk.order[0], UNREACHABLE, list[Chunk]()
        payload = await namespaces.shown_to(group_name, chunk.payload(group_name))
        for endpoint in chunk.order:
            async with self._slots.hold(endpoint.id, endpoint.concurrency):
                if not await endpoints.health.may_call(endpoint):
                    continue
                answer = await self._call(endpoint, payload)
                smaller = chunk.smaller() if answer.payload_refused else []
                await endpoints.health.note(endpoint, _alive(answer) if smaller else answer)
            if answer.asked or smaller:
                break
        for part in smaller:
            await self._ask(group_name, part)
        if not smaller:
            attempts = [outcomes.attempt_of(half, endpoint, answer) for half in chunk.halves]
            await asyncio.gather(*map(outcomes.apply, attempts))
            await self._answers.note(endpoint.id, answer, chunk.halves)

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
    """A success for the endpoint's health: a server that refuses a call because of its size is alive."""
    return replace(answer, outcome="answered", status=200)


async def run(late_seconds: float = -AHEAD_SECONDS) -> None:
    """Starts the due checks of this process: see `Checker.run`."""
    await runtime.part(Checker).run(late_seconds)
