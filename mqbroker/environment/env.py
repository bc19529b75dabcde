"""Reads settings from the environment, refuses an invalid value by name, and lists all settings for `./mq settings`."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import time
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured

from webhooks.addresses import Networks, parse_networks

T = TypeVar("T")
PREFIX = "MQBROKER_"


@dataclass(frozen=True)
class Setting:
    """A declared setting: its environment variable, meaning, value and default, the last two as text."""

    name: str
    value: str
    default: str
    meaning: str


declared: list[Setting] = []


def read(
    name: str, default: T, meaning: str, parse: Callable[[str], T], valid: str, write: Callable[[T], str] = str
) -> T:
    """The value of `MQBROKER_<name>`, or `default`. `parse` converts the text, `write` is its inverse.

    Raises ImproperlyConfigured, which names the variable, the invalid value, and the valid values (`valid`).
    """
    raw = os.environ.get(PREFIX + name)
    try:
        value = default if raw is None else parse(raw)
    except ValueError as problem:
        raise ImproperlyConfigured(f"{PREFIX}{name}={raw!r} cannot be used ({problem}): give {valid}.") from problem
    declared.append(Setting(PREFIX + name, write(value), write(default), meaning))
    return value


def whole(name: str, default: int, meaning: str, minimum: int = 0, maximum: int = 2**53) -> int:
    """The value of a variable, which must be a whole number between `minimum` and `maximum`."""

    def parse(raw: str) -> int:
        value = int(raw)
        if not minimum <= value <= maximum:
            raise ValueError("out of range")
        return value

    return read(name, default, meaning, parse, f"a whole number from {minimum} to {maximum}")


def switch(name: str, default: bool, meaning: str) -> bool:
    """`true` or `false`."""

    def parse(raw: str) -> bool:
        if raw.lower() not in ("true", "false"):
            raise ValueError("neither true nor false")
        return raw.lower() == "true"

    return read(name, default, meaning, parse, "true or false", lambda value: str(value).lower())


def choice(name: str, default: str, meaning: str, choices: tuple[str, ...]) -> str:
    """The value of a variable, which must be one of the words in `choices`."""

    def parse(raw: str) -> str:
        if raw not in choices:
            raise ValueError("none of the choices")
        return raw

    return read(name, default, meaning, parse, " or ".join(choices))


def text(name: str, default: str, meaning: str) -> str:
    """Any text."""
    return read(name, default, meaning, str, "a text")


def time_of_day(name: str, default: time, meaning: str) -> time:
    """A time of the day, such as `02:00`."""

    def parse(raw: str) -> time:
        if len(raw) != len("00:00"):
            raise ValueError("neither hours nor minutes")
        return time.fromisoformat(raw)

    return read(
        name, default, meaning, parse, "hours and minutes, such as 02:00", lambda value: value.strftime("%H:%M")
    )


def words(name: str, default: tuple[str, ...], meaning: str) -> tuple[str, ...]:
    """Words between commas."""

    def parse(raw: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in raw.split(",") if word.strip())

    return read(name, default, meaning, parse, "words between commas", ",".join)


# The length of a 128-bit key in hexadecimal digits.
SHORTEST_KEY = 32


def secret_keys(name: str, meaning: str) -> tuple[str, ...]:
    """Random texts, separated by commas, of at least SHORTEST_KEY characters each. An error does not show the value."""
    found = tuple(key.strip() for key in os.environ.get(PREFIX + name, "").split(",") if key.strip())
    if any(len(key) < SHORTEST_KEY for key in found):
        raise ImproperlyConfigured(
            f"{PREFIX}{name} has a key that is too short: give random texts of {SHORTEST_KEY} characters or more, "
            "between commas."
        )
    declared.append(Setting(PREFIX + name, ",".join(found), "", meaning))
    return found


def networks(name: str, default: Networks, meaning: str) -> Networks:
    """IP networks, separated by commas, such as `127.0.0.0/8,::1/128`."""

    def written(value: Networks) -> str:
        return ",".join(map(str, value))

    return read(
        name, default, meaning, parse_networks, "IP networks between commas, such as 10.0.0.0/8,::1/128", written
    )


UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# Ten years, so that no due time lies after the year 9999.
MAX_LEVEL_DAYS = 3650


def levels(name: str, default: str, meaning: str) -> tuple[int, ...]:
    """Delay levels in RocketMQ's notation, `1s 5s 1m 2h`, as the seconds of each level."""

    def parse_level(token: str) -> int:
        unit, number = token[-1:], token[:-1]
        if unit not in UNIT_SECONDS or not number.isascii() or not number.isdigit():
            raise ValueError(f"level {token!r} is no number with a unit")
        seconds = int(number) * UNIT_SECONDS[unit]
        if seconds > MAX_LEVEL_DAYS * UNIT_SECONDS["d"]:
            raise ValueError(f"level {token!r} is longer than {MAX_LEVEL_DAYS}d")
        return seconds

    def parse(raw: str) -> tuple[int, ...]:
        tokens = raw.split()
        if not tokens:
            raise ValueError("no level is given")
        return tuple(parse_level(token) for token in tokens)

    valid = "numbers with a unit s, m, h or d between blanks, such as 1s 5s 1m"
    return read(name, parse(default), meaning, parse, valid, lambda value: " ".join(map(level, value)))


def level(seconds: int) -> str:
    """A delay in RocketMQ's notation, in the largest unit that divides the delay without remainder."""
    unit = max((unit for unit in UNIT_SECONDS if seconds % UNIT_SECONDS[unit] == 0), key=UNIT_SECONDS.__getitem__)
    return f"{seconds // UNIT_SECONDS[unit]}{unit}"
