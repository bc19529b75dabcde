"""Times and durations of the protocol, which may exceed the years that Python and PostgreSQL can hold."""

from datetime import UTC, datetime

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from mqbroker.rocketmq.protocol.definition_pb2 import Code
from mqbroker.rocketmq.statuses import Refused


def moment(name: str, given: Timestamp, code: Code = Code.BAD_REQUEST) -> datetime:
    """A time. Raises Refused with the field's name for a time outside of the years 1 to 9999."""
    try:
        return given.ToDatetime(UTC)
    except (ValueError, OverflowError) as problem:
        detail = f"{name} {given.seconds} s since 1970 cannot be used: give a time in the years 1 to 9999."
        raise Refused(code, detail) from problem


def seconds_of(name: str, given: Duration, code: Code = Code.BAD_REQUEST) -> float:
    """A duration in seconds. Raises Refused with the field's name for a duration above 10,000 years."""
    try:
        return given.ToTimedelta().total_seconds()
    except (ValueError, OverflowError) as problem:
        detail = f"{name} of {given.seconds} s cannot be used: give less than 10,000 years."
        raise Refused(code, detail) from problem
