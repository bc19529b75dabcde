"""Times as the API answers them: RFC 3339 in UTC, always with microseconds."""

from datetime import UTC, datetime

import msgspec


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
