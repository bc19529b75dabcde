"""Producer groups as an operator keeps them: made, changed, listed and taken away."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from transactions import groups, undecided
from transactions.models import ProducerGroup


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
    """Takes a group away with its endpoints.

    Raises MessageIllegal, GroupNotExist, or MessageIllegal while the group has undecided transactions: nobody could be
    asked about them any more. One that is begun in the 2 s until every process knows is discarded by its age.
    """
    group = find(name)
    undecided.judge_group(group)
    group.delete()
    groups.forget(name)
