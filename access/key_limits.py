"""Limits of an API key and of a namespace: messages and bytes a second, which each web process counts for itself.

A token bucket holds the messages or bytes of one second. A request passes while the bucket is above zero, and takes its
whole cost. So a single request may exceed the limit of a second, and then later requests wait until the bucket has
filled up again. A common counter in PostgreSQL or Redis would cost each send a round trip.
"""

import asyncio
import math
import time
from dataclasses import dataclass

from access.rows import KeyRow, Limits
from store.db import connections
from store.db.statements import Statement
from store.errors import RateLimited
from store.naming import namespaces
from store.process import runtime
from store.rows import NamespaceRow

ADD_REFUSALS = Statement(__file__, "add_refusals")

KEY, NAMESPACE = "key", "namespace"

# Each process counts refusals, and adds its count to the key's row at most once in this time.
KEEP_SECONDS = 5.0
# The most keys and namespaces whose allowances a process keeps. Beyond this the least recently used allowance is
# dropped.
MAX_KEPT = 10_000


class Bucket:
    """A token bucket of messages or bytes, filled at `per_second`. A negative balance must be filled up first."""

    __slots__ = ("_at", "_balance", "per_second")

    def __init__(self, per_second: int, at: float) -> None:
        self.per_second = per_second
        self._balance = float(per_second)
        self._at = at

    def wait_seconds(self, at: float) -> float:
        """The number of seconds for which the next request has to wait; 0: the request may pass now."""
        filled = self._balance + max(at - self._at, 0.0) * self.per_second
        self._balance, self._at = min(filled, float(self.per_second)), at
        return 0.0 if self._balance > 0 else max(-self._balance / self.per_second, 1 / self.per_second)

    def take(self, units: int) -> None:
        """Takes the cost of a request."""
        self._balance -= units


@dataclass(slots=True)
class Allowance:
    """The messages and bytes that one key, or all keys of one namespace, may still send in this process."""

    id: int
    kind: str
    name: str = ""
    messages: Bucket | None = None
    bytes: Bucket | None = None
    # The limit of undecided transactions applies to the whole broker, so the app `transactions` checks it, not this
    # class.
    max_undecided: int | None = None
    refused: int = 0
    # In the allowance of a key: the allowance of the key's namespace, which all keys of the namespace share.
    shared: "Allowance | None" = None

    def spend(self, messages: int, size: int, at: float) -> None:
        """Takes the cost of a request with `messages` messages and `size` bytes, at the monotonic time `at`.

        Raises RateLimited, and takes nothing, when a limit of the key or of its namespace is used up.
        """
        both = (self,) if self.shared is None else (self, self.shared)
        for one in both:
            one.require(at)
        for one in both:
            for bucket, cost in ((one.messages, messages), (one.bytes, size)):
                if bucket is not None:
                    bucket.take(cost)

    def require(self, at: float) -> None:
        """Raises RateLimited when a limit of this allowance is used up; the shared allowance of the namespace is not
        checked.
        """
        for bucket, unit in ((self.messages, "messages"), (self.bytes, "bytes")):
            wait_seconds = bucket.wait_seconds(at) if bucket is not None else 0.0
            if bucket is not None and wait_seconds > 0:
                self.refused += 1
                raise self._refusal(bucket, unit, math.ceil(wait_seconds))

    @property
    def named(self) -> str:
        """The key or namespace of the limits, for the sentence of a refusal."""
        return f"The {self.kind} {self.name!r}"

    @property
    def way_out(self) -> str:
        """The path of the API at which an operator raises the limits."""
        return "/v1/api-keys" if self.kind == KEY else f"/v1/namespaces/{self.name}"

    def _refusal(self, bucket: Bucket, unit: str, wait_seconds: int) -> RateLimited:
        return RateLimited(
            f"{self.named} has used up its limit of {bucket.per_second} {unit} a second: try again in "
            f"{wait_seconds} s, or raise {unit}_per_second at {self.way_out}.",
            retry_after_seconds=wait_seconds,
        )

    def adopt(self, name: str, limits: Limits, at: float) -> None:
        """Sets the limits of a row; an unchanged limit keeps its balance."""
        self.name = name
        self.messages = _adopted(self.messages, limits.messages_per_second, at)
        self.bytes = _adopted(self.bytes, limits.bytes_per_second, at)
        self.max_undecided = limits.max_undecided


def _adopted(bucket: Bucket | None, per_second: int | None, at: float) -> Bucket | None:
    if per_second is None:
        return None
    return bucket if bucket is not None and bucket.per_second == per_second else Bucket(per_second, at)


class Allowances:
    """The allowances of the keys and namespaces that have limits and have called this process."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], Allowance] = {}
        self._kept_at = 0.0

    def of(self, row: KeyRow) -> Allowance | None:
        """The messages and bytes that a key may still send here; None when neither the key nor its namespace has
        limits.
        """
        shared = None
        if row.namespace is not None and row.namespace_id is not None and row.limits_of_namespace != Limits():
            shared = self._of(NAMESPACE, row.namespace_id, row.namespace, row.limits_of_namespace)
        if shared is None and row.own_limits == Limits():
            return None
        found = self._of(KEY, row.id, row.name, row.own_limits)
        found.shared = shared
        return found

    def of_namespace(self, row: NamespaceRow) -> Allowance | None:
        """The messages and bytes that all keys of a namespace may still send; None when the namespace has no limits."""
        limits = Limits(row.messages_per_second, row.bytes_per_second, row.max_undecided)
        return None if limits == Limits() else self._of(NAMESPACE, row.id, row.name, limits)

    def _of(self, kind: str, id_: int, name: str, limits: Limits) -> Allowance:
        found = self._kept.pop((kind, id_), None) or Allowance(id_, kind)
        if len(self._kept) >= MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[kind, id_] = found
        found.adopt(name, limits, time.monotonic())
        return found

    async def keep(self) -> None:
        """Adds the counted refusals to the rows of the keys and namespaces, at most every KEEP_SECONDS.

        A crash may lose the refusals of the last seconds.
        """
        now = asyncio.get_running_loop().time()
        refused = [one for one in self._kept.values() if one.refused]
        if not refused or now - self._kept_at < KEEP_SECONDS:
            return
        self._kept_at = now
        for kind, statement in ((KEY, ADD_REFUSALS), (NAMESPACE, namespaces.ADD_REFUSALS)):
            counts = {one.id: one.refused for one in refused if one.kind == kind}
            for one in refused:
                one.refused = 0 if one.kind == kind else one.refused
            if counts:
                await connections.read_control(statement, {"id": list(counts), "refused": list(counts.values())})


def of(row: KeyRow) -> Allowance | None:
    """The messages and bytes that a key may still send here; None if neither the key nor its namespace has limits."""
    return runtime.control(Allowances).of(row)


async def of_topic(name: str) -> Allowance | None:
    """The messages and bytes that a topic's namespace may still send; the broker's own messages count, too."""
    row = await namespaces.of_name(name)
    return None if row is None else runtime.control(Allowances).of_namespace(row)


async def keep() -> None:
    """Adds this process's counts of refusals to the rows of the keys; see `Allowances.keep`."""
    await runtime.control(Allowances).keep()
