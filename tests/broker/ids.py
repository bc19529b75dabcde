"""Ids for rows that a test writes by itself."""

from datetime import datetime
from uuid import UUID

from mqbroker_client.core.ids import uuid7

BITS_BELOW_THE_TIME = 80


def id_of(at: datetime) -> UUID:
    """A UUIDv7 that was made at this time: the broker finds what happened in the last hour by its ids."""
    milliseconds = int(at.timestamp() * 1000)
    return UUID(int=milliseconds << BITS_BELOW_THE_TIME | uuid7().int % (1 << BITS_BELOW_THE_TIME))
