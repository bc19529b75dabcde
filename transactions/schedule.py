"""Immunity: the age of a half message at its first check, as its producer may set it."""

import re
from collections.abc import Sequence

from django.conf import settings

from store.errors import MessageIllegal
from store.messages import Message
from store.process.configuration import setting

# The immunities that make a line, in seconds: the default timeout, and a short one. The statements name
# them: each line is one index probe more for them.
LINES = (1, 6)
# For the claim and the call of the one check that fits in before a half message is too old.
ONE_CHECK_SECONDS = 60
# RocketMQ's users give the immunity as this property, in whole seconds.
IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
WHOLE_SECONDS = re.compile(r"[0-9]{1,12}")


def longest_seconds() -> int:
    """After it a half message can still be asked about before its age discards it: once, with the interval after it."""
    first_check = settings.TRANSACTION_CHECK_INTERVAL_SECONDS + ONE_CHECK_SECONDS
    return max(settings.RESERVED_HOURS * 3600 - int(first_check), 0)


def in_seconds(asked: float | None) -> float:
    """Age in seconds at which the first check is due: the message's own immunity, and never below the timeout."""
    if asked is not None and asked > (longest := longest_seconds()):
        raise MessageIllegal(
            f"check_immunity_seconds {asked} is above the maximum of {longest}: the retention of "
            f"{settings.RESERVED_HOURS} hours, less the time for one check."
        )
    return max(asked or 0.0, float(setting("TRANSACTION_TIMEOUT_SECONDS")))


def line(seconds: float) -> int:
    """The line in which a half message with this immunity waits for its first check: that immunity, or 0 for none."""
    return int(seconds) if seconds in LINES else 0


def taken(messages: Sequence[Message]) -> float | None:
    """RocketMQ's property for the immunity, taken off the messages: the longest. What is no number is the default."""
    given = [message.properties.pop(IMMUNITY, None) for message in messages if message.properties]
    seconds = [float(text) for text in given if text is not None and WHOLE_SECONDS.fullmatch(text)]
    return max(seconds, default=None)
