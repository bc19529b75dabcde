"""Producer groups by name, cached for seconds by each process."""

import fnmatch

from django.conf import settings

from access.callers import Caller
from store.db import connections
from store.db.statements import Statement
from store.errors import GroupNotExist, NoPermission
from store.naming.cached_groups import Groups
from store.naming.names import MAX_CHARACTERS
from store.process import runtime
from store.process.configuration import setting
from transactions.errors import TransactionsRejected
from transactions.models import ProducerGroup
from transactions.rows import NamedGroup, ProducerGroupRow

CREATE_PRODUCER_GROUP = Statement(__file__, "create_producer_group")
FIND_PRODUCER_GROUP = Statement(__file__, "find_producer_group", ProducerGroupRow)
NAME_PRODUCER_GROUPS = Statement(__file__, "name_producer_groups", NamedGroup)


class ProducerGroups(Groups[ProducerGroupRow]):
    """The producer groups that one process has cached."""

    def __init__(self) -> None:
        super().__init__("producer", MAX_CHARACTERS, FIND_PRODUCER_GROUP, CREATE_PRODUCER_GROUP, ProducerGroup)


def _groups() -> ProducerGroups:
    return runtime.control(ProducerGroups)


def known(name: str) -> ProducerGroupRow | None:
    """The group of this name, if this process has it in its cache; else None."""
    return runtime.control(ProducerGroups).known(name)


async def find(name: str) -> ProducerGroupRow | None:
    """The group of this name, or None."""
    return await _groups().find(name)


async def existing(name: str) -> ProducerGroupRow:
    """The group of this name. Raises GroupNotExist if there is none."""
    return await _groups().existing(name)


def absent(name: str) -> GroupNotExist:
    """The refusal for a producer group that does not exist."""
    return _groups().absent(name)


def forget(name: str) -> None:
    """Drops a group from the caches, after this process has changed it."""
    _groups().forget(name)


def validate_name(name: str) -> None:
    """Raises MessageIllegal unless a group may have this name."""
    _groups().validate_name(name, "producer_group")


async def find_for_producing(name: str) -> ProducerGroupRow | None:
    """The group that begins a transaction; None if `for_producing` will create it.

    Raises GroupNotExist or TransactionsRejected.
    """
    validate_name(name)
    group = await find(name)
    if group is None and not settings.AUTO_CREATE_TOPICS:
        raise absent(name)
    if settings.REJECT_TRANSACTION_MESSAGE or (group is not None and group.reject_transaction_message):
        raise TransactionsRejected(
            f"The producer group {name} may not send half messages: an operator has forbidden it."
        )
    return group


async def for_producing(name: str, owner: str | None = None) -> ProducerGroupRow:
    """The group that begins a transaction. A missing group is created: for the API key `owner` only, or with None for
    all keys. Raises the errors of `find_for_producing`.

    Also raises NoPermission if a request with another key has created the group meanwhile.
    """
    group = await find_for_producing(name)
    if group is None:
        group = await _groups().at_first_use(name, api_keys=None if owner is None else [owner])
        if owner is not None:
            _require_key(group, name, owner)
    return group


async def of_topic(topic: str) -> ProducerGroupRow:
    """The group with the name of an existing topic; a missing group is created for all keys that may produce to the
    topic.

    RocketMQ's newer clients name no producer group, so all producers of a topic are one group.
    """
    return await _groups().find(topic) or await _groups().make(topic, api_keys=None)


def known_for_producing(name: str) -> ProducerGroupRow | None:
    """The group that begins a transaction, if this process has it in its cache; else None."""
    group = known(name)
    if group is None or setting("REJECT_TRANSACTION_MESSAGE") or group.reject_transaction_message:
        return None
    return group


def lets(group: ProducerGroupRow, caller: Caller) -> bool:
    """Whether the group is open to all keys, lists the caller's key by name, or is managed by the caller.

    A key that only matches a pattern of the list gets False here; `require_key` also compares patterns.
    """
    return group.api_keys is None or caller.name in group.api_keys or caller.may_manage_names(group.name)


async def require_key(name: str, key: str) -> None:
    """Raises NoPermission if the group has a list of API keys and the name of this key is not in it.

    A missing group and an invalid name pass, because the next step creates or refuses them.
    """
    group = await find(name)
    if group is not None:
        _require_key(group, name, key)


def _require_key(group: ProducerGroupRow, name: str, key: str) -> None:
    if group.api_keys is None or key in group.api_keys:
        return
    if not any(fnmatch.fnmatchcase(key, pattern) for pattern in group.api_keys):
        raise NoPermission(
            f"The key {key!r} may not act for the producer group {name}: add it to its api_keys by PUT "
            f"/v1/producer-groups/{name}, or name another group."
        )


async def name(group_id: int) -> str:
    """The name of a group by its id."""
    return (await names({group_id})).get(group_id) or deleted_name(group_id)


async def names(ids: set[int]) -> dict[int, str]:
    """The names of groups by their ids; deleted groups are missing."""
    return {row.id: row.name for row in await connections.read_control(NAME_PRODUCER_GROUPS, {"ids": list(ids)})}


def deleted_name(group_id: int) -> str:
    """The text shown for the name of a deleted group."""
    return f"(deleted producer group {group_id})"
