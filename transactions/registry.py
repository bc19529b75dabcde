"""Producer groups as an operator keeps them: created, changed, listed and deleted."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import OperationalError

from store import registry
from store.cells import cells, copies
from store.db import databases, fields, pooling, sync
from store.errors import MessageIllegal, SystemBusy
from store.models import Topic
from store.naming import namespaces
from store.notices import caches
from transactions import groups, stats
from transactions.models import ProducerGroup

# Longer than a batch of the group commit usually takes.
LOCK_TIMEOUT = "3s"
MAX_UNDECIDED = 1_000_000_000
MAX_KEYS = 100
KEY = r"^[A-Za-z0-9_ .:@+*-]{1,100}$"
KEY_RULE = "the name of an API key, or a pattern of names, where * stands for any text"
FIELDS = fields.of(
    ProducerGroup,
    fields.Switch("reject_transaction_message", "Half messages refused", help="Refuse its half messages"),
    fields.Whole(
        "max_undecided",
        "Undecided at most",
        help="The most undecided transactions",
        unset=f"the broker's MAX_UNDECIDED_PER_GROUP, {settings.MAX_UNDECIDED_PER_GROUP}",
        least=1,
        most=MAX_UNDECIDED,
    ),
    fields.Switch("checks_paused", "Checks paused", help="The broker does not check its half messages"),
    fields.Words(
        "api_keys",
        "API keys",
        help="Names of API keys that may begin and end its transactions and receive their checks, in addition to keys "
        "with manage",
        unset="each key that may produce to the topics",
        default="null; the key whose first half message makes the group",
        pattern=KEY,
        rule=KEY_RULE,
        most=MAX_KEYS,
        between=",",
    ),
)


def page(after: str, count: int, matching: str = "", namespace: str | None = None) -> Sequence[ProducerGroup]:
    """Producer groups by name: the first `count` after `after` whose names contain `matching`, upper or lower case."""
    rows = ProducerGroup.objects.filter(namespaces.within(namespace))
    return registry.by_name(rows, after, count, matching)


def find(name: str) -> ProducerGroup:
    """The producer group of this name. Raises MessageIllegal for an invalid name, or GroupNotExist."""
    groups.validate_name(name)
    group = named(name)
    if group is None:
        raise groups.absent(name)
    return group


def named(name: str) -> ProducerGroup | None:
    """The producer group of this name, or None."""
    return ProducerGroup.objects.filter(name=name).first()


def put(name: str, changes: Mapping[str, Any]) -> tuple[ProducerGroup, bool]:
    """Creates the group, or changes only the given fields (of FIELDS). Returns the group and whether it is new.

    At the return every process uses the change. Raises MessageIllegal.
    """
    groups.validate_name(name)
    return registry.put_row(ProducerGroup, name, changes, {})


def remove(name: str) -> None:
    """Deletes a group with its endpoints.

    The group's row is locked in each cell before its transactions are counted. A begin holds the same row
    (`hold_groups`), so each begin either is counted here or does not find the group any more. Raises MessageIllegal for
    an invalid name or while the group has undecided transactions, GroupNotExist, or SystemBusy if begins follow each
    other without a pause.
    """
    group = find(name)
    _require_decided(group)
    with copies.change():
        if not _lock(group):
            # Another request has just deleted the group.
            raise groups.absent(group.name)
        copies.in_others(lambda: _lock(group))
        _require_decided(group)
        group_id = group.id
        group.delete()
        copies.write(ProducerGroup, [group_id])
        caches.drop_everywhere()


def remove_topic(topic: Topic) -> None:
    """Deletes a topic. Raises MessageIllegal while undecided transactions have messages of the topic. Otherwise raises
    the errors of `store.registry.remove`. Reads the whole table of half messages, because an index of half messages by
    topic would slow every begin down for this rare call.
    """
    undecided = sum(cells.each(lambda: stats.undecided_of_topic(topic.id)))
    if undecided:
        raise MessageIllegal(
            f"The topic {topic.name} has messages of {undecided} undecided transactions: "
            "end them before you delete the topic, the discarded ones with `mqb resolve`."
        )
    registry.remove(topic)


def _require_decided(group: ProducerGroup) -> None:
    """Raises MessageIllegal while the group has undecided transactions, pending or discarded."""
    undecided = sum(cells.each(lambda: stats.undecided_of_group(group.id)))
    if undecided:
        raise MessageIllegal(
            f"The producer group {group.name} has {undecided} undecided transactions: "
            "end them before you delete the group, the discarded ones with `mqb resolve`."
        )


def _lock(group: ProducerGroup) -> bool:
    """Locks the group's row in the cell that the work has entered, or else at the control. Returns whether it exists.

    Raises SystemBusy if the row stays in use.
    """
    sync.read(pooling.SET_LOCK_TIMEOUT, {"lock_timeout": LOCK_TIMEOUT})
    try:
        return ProducerGroup.objects.using(databases.here()).select_for_update().filter(id=group.id).exists()
    except OperationalError as problem:
        raise SystemBusy(
            f"New transactions of the producer group {group.name} began during the deletion: the group was "
            "not deleted. Stop its producers and try again."
        ) from problem
