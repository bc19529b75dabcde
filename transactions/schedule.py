"""The schedule of check-back: when a half message is checked, how often, and when it is discarded.

| what | when | setting (default) | statements |
|---|---|---|---|
| first check | at its immunity, at least the timeout | TRANSACTION_TIMEOUT_SECONDS (6) | `begin_halves` |
| next check | an interval after the last | TRANSACTION_CHECK_INTERVAL_SECONDS (30) | `postpone_checks` |
| discarded | an interval after the last that counts | TRANSACTION_CHECK_MAX (15) | `find_exhausted` |
| discarded | at the age of the retention | RESERVED_HOURS (72) | `find_outdated` |

Which checks count is in `docs/check-back.md`. Rules and defaults are RocketMQ's (transactionTimeOut,
transactionCheckInterval, transactionCheckMax, fileReservedTime), except that a check counts only if a producer was
asked.
"""

import re
from collections.abc import Sequence

from django.conf import settings

from store.errors import MessageIllegal
from store.messages import Message
from store.process.configuration import setting

# The immunities that have a line, in seconds: the default timeout, and a short one. The statements contain these
# numbers, and take one more index probe for each line.
LINES = (1, 6)
# Time for the claim and the call of the last check before a half message is too old.
ONE_CHECK_SECONDS = 60
# RocketMQ's users give the immunity as this property, in whole seconds.
IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
WHOLE_SECONDS = re.compile(r"[0-9]{1,12}")


def interval_seconds() -> float:
    """The number of seconds from one check of a half message to the next."""
    return float(settings.TRANSACTION_CHECK_INTERVAL_SECONDS)


def most_checks() -> int:
    """The number of counted checks after which a half message is discarded."""
    return int(settings.TRANSACTION_CHECK_MAX)


def longest_seconds() -> int:
    """The longest immunity, in seconds, after which one check and an interval fit in before the age of the discard."""
    return max(settings.RESERVED_HOURS * 3600 - int(interval_seconds() + ONE_CHECK_SECONDS), 0)


def in_seconds(asked: float | None) -> float:
    """The age in seconds at which the first check is due: the message's own immunity, but at least the timeout."""
    least = float(setting("TRANSACTION_TIMEOUT_SECONDS"))
    if asked is None:
        return least
    if asked > (longest := longest_seconds()):
        raise MessageIllegal(
            f"check_immunity_seconds {asked} is above the maximum of {longest}: the retention of "
            f"{settings.RESERVED_HOURS} hours minus the time that one check needs."
        )
    return max(asked, least)


def line(seconds: float) -> int:
    """The number of the line in which a half message with this immunity waits for its first check; 0 means no line."""
    return int(seconds) if seconds in LINES else 0


def taken(messages: Sequence[Message]) -> float | None:
    """Removes RocketMQ's property for the immunity from messages. Returns the longest; invalid ones are ignored."""
    longest: float | None = None
    for message in messages:
        text = message.properties.pop(IMMUNITY, None) if message.properties else None
        if text is not None and WHOLE_SECONDS.fullmatch(text):
            longest = max(float(text), longest or 0.0)
    return longest
