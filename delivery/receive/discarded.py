"""What an entry of the discards' topic adds to its message: how often its producer was asked, and the producer's group.

The entry counts the checks where entries of other topics count retries; no consumer group has retried it yet.
"""

from collections.abc import Iterable, Mapping

from msgspec import UNSET

from delivery.rows import ProducerGroupName
from store.db import connections
from store.db.statements import Statement
from store.messages import MessageRow, StoredMessage

NAME_PRODUCER_GROUPS = Statement(__file__, "name_producer_groups", ProducerGroupName)


async def producers(rows: Iterable[MessageRow]) -> dict[int, str]:
    """The names of the producer groups of messages, by their ids."""
    ids = {row.producer_group_id for row in rows if row.producer_group_id is not None}
    found = await connections.read(NAME_PRODUCER_GROUPS, {"ids": list(ids)}) if ids else ()
    return {row.id: row.name for row in found}


def add_properties(message: StoredMessage, row: MessageRow, check_times: int, names: Mapping[int, str]) -> None:
    """Adds RocketMQ's properties of a discarded message, PGROUP unless its group was deleted."""
    name = None if row.producer_group_id is None else names.get(row.producer_group_id)
    message.properties = {
        **({} if name is None else {"PGROUP": name}),
        "TRANSACTION_CHECK_TIMES": str(check_times),
        **({} if message.properties is UNSET else message.properties),
    }
