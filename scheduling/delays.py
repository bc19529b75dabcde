"""Delays: how long a message waits before it becomes visible."""

from datetime import datetime, timedelta

import msgspec
from django.conf import settings

from store.errors import DelayIllegal
from store.messages import Message

# A clock that is set by less than this is being kept right: nothing is two hours early because of it.
CLOCK_STEP_SECONDS = 1


class Delay(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of: a delay level (1 is the first), a number of seconds, a time. None of them: now."""

    level: int | None = None
    seconds: float | None = None
    at: datetime | None = None


def of_message(message: Message) -> Delay | None:
    """The delay that a message was sent with; a level above the highest is the highest, as in RocketMQ."""
    if message.delay_level:
        return Delay(level=known_level(message.delay_level))
    if message.delay_seconds:
        return Delay(seconds=message.delay_seconds)
    if message.deliver_at is not None:
        return Delay(at=message.deliver_at)
    return None


def judge(delay: Delay | None, now: datetime) -> None:
    """Judges a message's delay when the message is accepted, and never again: the maximum may be lowered meanwhile.

    Raises DelayIllegal when it is due later than MAX_TIMER_DELAY_SECONDS from `now`.
    """
    longest = settings.MAX_TIMER_DELAY_SECONDS
    if delay is None or delay.level is not None:
        return
    if delay.seconds is not None and delay.seconds > longest:
        raise DelayIllegal(f"delay_seconds {delay.seconds} is above the maximum of {longest}.")
    if delay.at is not None and delay.at > now + timedelta(seconds=longest):
        raise DelayIllegal(f"deliver_at {delay.at.isoformat()} is too far ahead: the maximum is {longest} seconds.")


def due_at(delay: Delay | None, now: datetime) -> datetime:
    """When a message is due whose delay counts from `now`, the database's time."""
    if delay is None:
        return now
    if delay.level is not None:
        return now + timedelta(seconds=seconds_of_level(delay.level))
    return delay.at if delay.at is not None else now + timedelta(seconds=delay.seconds or 0)


def known_level(level: int) -> int:
    """The level itself, or the highest one for any above it."""
    return min(level, len(settings.DELAY_LEVELS))


def seconds_of_level(level: int) -> int:
    """The delay of a level, the last one for any level above."""
    return settings.DELAY_LEVELS[known_level(level) - 1]


def corrected(due: datetime, level: int, now: datetime) -> datetime:
    """When an entry of a level's queue is due: now, if its time is further off than the level's delay.

    The level was shortened then, or a clock set back (RocketMQ's `correctDeliverTimestamp`). A level that was removed
    from the list has no delay to be held to: its messages keep their time. `now` must have been read after the entry:
    what was stored since would seem too far off.
    """
    if level > len(settings.DELAY_LEVELS):
        return due
    latest = now + timedelta(seconds=seconds_of_level(level) + CLOCK_STEP_SECONDS)
    return due if due <= latest else now
