"""Discarded messages: an entry of their topic adds the number of checks and the producer group to the message.

The column in which entries of other topics count retries counts the checks here.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import UNSET

from store.messages import MessageRow, StoredMessage
from store.process import runtime

Naming = Callable[[set[int]], Awaitable[Mapping[int, str]]]


class Producers:
    """The function that finds names of producer groups, which another app provides.

    Before `start`, `names` finds none.
    """

    def __init__(self) -> None:
        self._naming: Naming | None = None

    def start(self, naming: Naming) -> None:
        """Sets the function that finds the names of producer groups by their ids."""
        self._naming = naming

    async def names(self, ids: set[int]) -> Mapping[int, str]:
        """The names of producer groups by id; a deleted group is missing."""
        return {} if self._naming is None or not ids else await self._naming(ids)


async def producers(rows: Iterable[MessageRow]) -> Mapping[int, str]:
    """The names of the messages' producer groups, by id."""
    ids = {row.producer_group_id for row in rows if row.producer_group_id is not None}
    return await runtime.control(Producers).names(ids)


def add_properties(message: StoredMessage, row: MessageRow, check_times: int, names: Mapping[int, str]) -> None:
    """Adds RocketMQ's properties of a discarded message, and PGROUP unless the group was deleted."""
    name = None if row.producer_group_id is None else names.get(row.producer_group_id)
    message.properties = {
        **({} if name is None else {"PGROUP": name}),
        "TRANSACTION_CHECK_TIMES": str(check_times),
        **({} if message.properties is UNSET else message.properties),
    }
