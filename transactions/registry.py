"""Producer groups as an operator keeps them: made, changed, listed and taken away."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import OperationalError, transaction

from store.db import sync
from store.db.statements import Statement
from store.errors import SystemBusy
from transactions import groups, stats
from transactions.models import ProducerGroup
from transactions.rows import LimitedLockWait

LIMIT_LOCK_WAIT = Statement(__file__, "limit_lock_wait", LimitedLockWait)

# Longer than any batch of the group commit takes as a rule.
LOCK_TIMEOUT = "3s"


def page(after: str, count: int) -> Sequence[ProducerGroup]:
    """Producer groups by name, the first `count` behind the name `after`."""
    return list(ProducerGroup.objects.filter(name__gt=after).order_by("name")[:count])


def find(name: str) -> ProducerGroup:
    """The producer group of this name.

    Raises MessageIllegal for what is no name, or GroupNotExist.
    """
    groups.judge_name(name)
    group = ProducerGroup.objects.filter(name=name).first()
    if group is None:
        raise groups.absent(name)
    return group


def put(name: str, changes: Mapping[str, Any]) -> tuple[ProducerGroup, bool]:
    """Makes the group, or changes the fields given (`reject_transaction_message`, `max_undecided`, `checks_paused`);
    others stay as they are.

    Tells whether it was made. Raises MessageIllegal. Other processes see the change within 2 s.
    """
    groups.judge_name(name)
    with transaction.atomic():
        group, made = ProducerGroup.objects.select_for_update().get_or_create(name=name, defaults=changes)
        if not made:
            for field, value in changes.items():
                setattr(group, field, value)
            group.save(update_fields=list(changes))
    groups.forget(name)
    return group, made


def remove(name: str) -> None:
    """Deletes a group with its endpoints.

    The row is locked before its transactions are counted: those that are just being begun hold it (`hold_groups`), so
    each of them is counted, or finds the group gone. Raises MessageIllegal for what is no name, GroupNotExist,
    MessageIllegal while the group has undecided transactions, or SystemBusy while others begin without a pause.
    """
    group = find(name)
    stats.judge_group(group)
    with transaction.atomic():
        _lock(group)
        stats.judge_group(group)
        group.delete()
    groups.forget(name)


def _lock(group: ProducerGroup) -> None:
    """Raises GroupNotExist when another request has just deleted the group, SystemBusy when it stays in use."""
    sync.read(LIMIT_LOCK_WAIT, {"lock_timeout": LOCK_TIMEOUT})
    try:
        if not ProducerGroup.objects.select_for_update().filter(id=group.id).exists():
            raise groups.absent(group.name)
    except OperationalError as problem:
        raise SystemBusy(
            f"Transactions of the producer group {group.name} are being begun all the time: it is not deleted; try "
            "again when its producers are stopped."
        ) from problem
