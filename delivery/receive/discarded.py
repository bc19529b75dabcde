"""What an entry of the discards' topic adds to its message: how often its producer was asked, and the producer's group.

The entry counts the checks where entries of other topics count retries; no consumer group has retried it yet.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import UNSET

from store.messages import MessageRow, StoredMessage
from store.process import runtime

Naming = Callable[[set[int]], Awaitable[Mapping[int, str]]]


class Producers:
    """How this process names producer groups, which an app beside this one keeps. None are named before `start`."""

    def __init__(self) -> None:
        self._naming: Naming | None = None

    def start(self, naming: Naming) -> None:
        """Has groups named by their ids."""
        self._naming = naming

    async def names(self, ids: set[int]) -> Mapping[int, str]:
        """The names of groups; one that was deleted is missing."""
        return {} if self._naming is None or not ids else await self._naming(ids)


async def producers(rows: Iterable[MessageRow]) -> Mapping[int, str]:
    """The names of the producer groups of messages, by their ids."""
    ids = {row.producer_group_id for row in rows if row.producer_group_id is not None}
    return await runtime.control(Producers).names(ids)


def add_properties(message: StoredMessage, row: MessageRow, check_times: int, names: Mapping[int, str]) -> None:
    """Adds RocketMQ's properties of a discarded message, PGROUP unless its group was deleted."""
    name = None if row.producer_group_id is None else names.get(row.producer_group_id)
    message.properties = {
        **({} if name is None else {"PGROUP": name}),
        "TRANSACTION_CHECK_TIMES": str(check_times),
        **({} if message.properties is UNSET else message.properties),
    }
