"""Producer groups as an operator keeps them: created, changed, listed and deleted."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.db import OperationalError

from store import registry
from store.cells import cells, copies
from store.db import databases, fields, sync
from store.db.statements import Statement
from store.errors import MessageIllegal, SystemBusy
from store.models import Topic
from store.naming import namespaces
from store.notices import caches
from transactions import groups, stats
from transactions.models import ProducerGroup


class LimitedLockWait(NamedTuple):
    """The lock timeout that the transaction has now."""

    lock_timeout: str


LIMIT_LOCK_WAIT = Statement(__file__, "limit_lock_wait", LimitedLockWait)

# Longer than any batch of the group commit takes as a rule.
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
        help="Undecided transactions at most",
        unset=f"the broker's MAX_UNDECIDED_PER_GROUP, {settings.MAX_UNDECIDED_PER_GROUP}",
        least=1,
        most=MAX_UNDECIDED,
    ),
    fields.Switch("checks_paused", "Checks paused", help="No checks of its half messages are made"),
    fields.Words(
        "api_keys",
        "API keys",
        help="API keys, by name, that may begin and end its transactions and receive their checks, beside those that "
        "manage",
        unset="each that may produce to their topics",
        default="null; the key whose first half message makes the group",
        pattern=KEY,
        rule=KEY_RULE,
        most=MAX_KEYS,
        between=",",
    ),
)


def page(after: str, count: int, matching: str = "", namespace: str | None = None) -> Sequence[ProducerGroup]:
    """Producer groups by name: the first `count` behind `after` whose names contain `matching`, in any case."""
    return list(
        ProducerGroup.objects.filter(namespaces.within(namespace), name__gt=after, name__icontains=matching).order_by(
            "name"
        )[:count]
    )


def find(name: str) -> ProducerGroup:
    """The producer group of this name.

    Raises MessageIllegal for what is no name, or GroupNotExist.
    """
    groups.validate_name(name)
    group = named(name)
    if group is None:
        raise groups.absent(name)
    return group


def named(name: str) -> ProducerGroup | None:
    """The producer group of this name, or None."""
    return ProducerGroup.objects.filter(name=name).first()


def put(name: str, changes: Mapping[str, Any]) -> tuple[ProducerGroup, bool]:
    """Creates the group, or changes the given fields of it, of FIELDS; the others stay as they are.

    The flag is whether the group was created. Raises MessageIllegal. A change holds in every process.
    """
    groups.validate_name(name)
    return registry.put_row(ProducerGroup, name, changes, {})


def remove(name: str) -> None:
    """Deletes a group with its endpoints.

    Its row is locked in each cell before its transactions are counted. A begin holds the same row (`hold_groups`), so
    each begin is counted here, or does not find the group any more. Raises MessageIllegal for what is no name,
    GroupNotExist, MessageIllegal while the group has undecided transactions, or SystemBusy while begins follow without
    a pause.
    """
    group = find(name)
    _require_decided(group)
    with copies.change():
        if not _lock(group):
            # Another request has just deleted it.
            raise groups.absent(group.name)
        copies.in_others(lambda: _lock(group))
        _require_decided(group)
        group_id = group.id
        group.delete()
        copies.write(ProducerGroup, [group_id])
        caches.drop_everywhere()


def remove_topic(topic: Topic) -> None:
    """Deletes a topic. Raises MessageIllegal while transactions without a decision hold messages of it, and what
    `store.registry.remove` refuses.

    Reads the half messages from end to end: no index leads from a topic to them, and none is worth its price.
    """
    undecided = sum(cells.each(lambda: stats.undecided_of_topic(topic.id)))
    if undecided:
        raise MessageIllegal(
            f"The topic {topic.name} has messages of {undecided} undecided transactions: "
            "end them, or resolve the discarded ones, before it is deleted."
        )
    registry.remove(topic)


def _require_decided(group: ProducerGroup) -> None:
    """Raises MessageIllegal while the group has transactions without a decision, discarded ones among them."""
    undecided = sum(cells.each(lambda: stats.undecided_of_group(group.id)))
    if undecided:
        raise MessageIllegal(
            f"The producer group {group.name} has {undecided} undecided transactions: "
            "end them, or resolve the discarded ones, before it is deleted."
        )


def _lock(group: ProducerGroup) -> bool:
    """Whether the cell that the work has entered, or else the control, has its row, which is locked then.

    Raises SystemBusy when it stays in use.
    """
    sync.read(LIMIT_LOCK_WAIT, {"lock_timeout": LOCK_TIMEOUT})
    try:
        return ProducerGroup.objects.using(databases.here()).select_for_update().filter(id=group.id).exists()
    except OperationalError as problem:
        raise SystemBusy(
            f"Transactions of the producer group {group.name} are being begun all the time: it is not deleted; try "
            "again when its producers are stopped."
        ) from problem
