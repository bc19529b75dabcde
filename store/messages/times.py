"""Times of the API: RFC 3339; in answers always in UTC and with microseconds."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

Time = Annotated[datetime, msgspec.Meta(tz=True)]


def read(text: object) -> datetime:
    """The time of a text, in UTC, so that it can be stored and compared.

    Raises ValueError if the text is not a time with an offset, or is outside of the years 1 to 9999 in UTC.
    """
    try:
        return in_utc(msgspec.convert(text, Time))
    except msgspec.ValidationError as problem:
        raise ValueError(str(problem)) from problem


def in_utc(at: datetime) -> datetime:
    """The same time in UTC. Raises ValueError if this time is outside of the years 1 to 9999."""
    try:
        return at.astimezone(UTC)
    except OverflowError as problem:
        raise ValueError("it lies outside of the years 1 to 9999 of UTC") from problem


class WholeSecond(datetime):
    """A time with a fraction of 0, for `encode`: msgspec would write a datetime without the microseconds."""


def exact(at: datetime) -> datetime:
    """The same time, in a type with which `encode` writes microseconds even if they are 0."""
    return at if at.microsecond else WholeSecond.combine(at.date(), at.timetz())


def written(at: object) -> str:
    """A time in the form of the API, for values that msgspec does not encode itself."""
    if not isinstance(at, datetime):
        raise NotImplementedError(f"{type(at).__name__} has no form in JSON")
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


encode = msgspec.json.Encoder(enc_hook=written).encode
