"""The receipt handles of a request: unpacks them, settles them in their cells, and returns an outcome for each."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set

from delivery.errors import ReceiptExpired
from delivery.receipts import elsewhere
from delivery.receipts.handles import Handle, by_cell, unpack
from delivery.rows import GroupFacts
from store.commit import writer
from store.commit.operation import Operation
from store.errors import MessageIllegal, Refusal, SystemBusy
from store.naming import topics
from store.notices import notifier
from store.process import runtime

MAX_HANDLES = 1000


def require_count(given: list[str], field: str = "receipt_handles") -> None:
    """Raises MessageIllegal for no or too many handles."""
    if not 1 <= len(given) <= MAX_HANDLES:
        raise MessageIllegal(f"{field} has {len(given)} handles: give 1 to {MAX_HANDLES}.")


def unpacked(group: GroupFacts, given: list[str]) -> list[Handle | None]:
    """The content of each handle; None for a handle of another group, or a text that is no handle.

    Raises MessageIllegal for no or too many handles.
    """
    require_count(given)
    return [found if (found := unpack(one)) and found.group_id == group.id else None for one in given]


async def settle(
    group: GroupFacts, given: list[str], made: Callable[[Set[Handle]], Operation[Set[Handle]]]
) -> list[Refusal | None]:
    """Settles handles by one operation in each cell; returns None or a Refusal for each handle, in the order given.

    Raises MessageIllegal, or SystemBusy when all handles belong to one cell and the cell is away.
    """
    found = dict(zip(given, unpacked(group, given), strict=True))
    of_cells = by_cell(given)
    settled: set[Handle] = set()
    away: dict[str, Refusal] = {}
    for cell, of_cell in of_cells.items():
        wanted = {one for text in of_cell if (one := found[text]) is not None}
        try:
            with runtime.in_cell(cell):
                done = await writer.run(made(wanted)) if wanted else set()
                if elsewhere.have_left(None, left := wanted - done):
                    done = done | await elsewhere.settle(None, left, made)
                wake(group, done)
                settled |= done
        except SystemBusy as refusal:
            if len(of_cells) == 1:
                raise
            away |= dict.fromkeys(of_cell, refusal)
    return outcomes(given, [found[text] for text in given], settled, away)


async def ack(
    parts: Sequence[Operation[Set[Handle]]], given: Sequence[list[str]]
) -> tuple[Set[Handle], dict[str, Refusal]]:
    """Writes an ack in each cell; returns the handles that proved a delivery, and refusals by the given handles."""
    ended = await asyncio.gather(*map(writer.run, parts), return_exceptions=True)
    settled: set[Handle] = set()
    away: dict[str, Refusal] = {}
    for handles, result in zip(given, ended, strict=True):
        if isinstance(result, Refusal):
            away |= dict.fromkeys(handles, result)
        elif isinstance(result, BaseException):
            raise result
        else:
            settled |= result
    return settled, away


def wake(group: GroupFacts, settled: Set[Handle]) -> None:
    """Wakes the waiting receives of an ordered group, because its queues may have no delivery in flight any more; and
    the waiting receives of a group with limits, because a value may be below its limit again.
    """
    if group.ordered:
        notifier.notify(Counter(one.topic_id for one in settled))
    elif group.limits is not None and settled and (retries := topics.known(topics.RETRY_PREFIX + group.name)):
        # The notice names the group's retry topic, because other groups do not wait for its entries.
        notifier.notify(Counter({retries.id: len(settled)}))


def outcomes(
    given: list[str], found: Sequence[Handle | None], settled: Set[Handle], away: Mapping[str, Refusal]
) -> list[Refusal | None]:
    """The outcome of each handle, in the order given: None, the refusal of a cell that is away, or ReceiptExpired."""
    return [None if one in settled else away.get(text) or expired(text) for text, one in zip(given, found, strict=True)]


def expired(given: str) -> ReceiptExpired:
    """The refusal for a receipt handle that is no longer valid."""
    return ReceiptExpired(
        f"The receipt {given[:60]} is acked already, or its invisible time is over. A message without an ack "
        "is delivered again: ack within the invisible time, or extend it."
    )
