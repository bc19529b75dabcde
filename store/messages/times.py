"""Times as the API takes and answers them: RFC 3339, answered in UTC, always with microseconds."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

Time = Annotated[datetime, msgspec.Meta(tz=True)]


def read(text: object) -> datetime:
    """The time of a text, in UTC, so that it can be stored and compared.

    Raises ValueError for what is no time with an offset, or lies outside of the years 1 to 9999 of UTC.
    """
    try:
        return in_utc(msgspec.convert(text, Time))
    except msgspec.ValidationError as problem:
        raise ValueError(str(problem)) from problem


def in_utc(at: datetime) -> datetime:
    """The same time in UTC. Raises ValueError where its offset moves it out of the years 1 to 9999."""
    try:
        return at.astimezone(UTC)
    except OverflowError as problem:
        raise ValueError("it lies outside of the years 1 to 9999 of UTC") from problem


class WholeSecond(datetime):
    """A time without a fraction, for `encode`: msgspec writes such a datetime without microseconds."""


def exact(at: datetime) -> datetime:
    """The same time, of which `encode` writes the microseconds also where they are 0."""
    return at if at.microsecond else WholeSecond.combine(at.date(), at.timetz())


def written(at: object) -> str:
    """A time as the API answers it, for what msgspec does not encode by itself."""
    if not isinstance(at, datetime):
        raise NotImplementedError(f"{type(at).__name__} has no form in JSON")
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


encode = msgspec.json.Encoder(enc_hook=written).encode
