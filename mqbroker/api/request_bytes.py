"""The most bytes of a request, for each call. The rule for messages, MAX_MESSAGE_BYTES, is about decoded bytes."""

from django.conf import settings

from delivery.receipts import forward
from scheduling.sending import batches
from store.messages import MAX_PROPERTIES_BYTES
from store.process.budget import RESERVED_PART
from transactions.operations import validation

# The longest JSON of a legal body: four characters of base64 for three bytes, and each may be written as \u002B.
# A text is shorter: a control character is one byte and six of JSON, such as \u0001.
ENCODED_BYTES_PER_BYTE = 8
# The other fields of a message. Tags, keys and properties have 16 KiB together; the longest JSON of a byte of them is a
# key of one character, "\u00XX", with its quotes and comma. The rest has short limits of its own.
FIELDS_BYTES = 9 * MAX_PROPERTIES_BYTES + 16 * 1024
# 1,000 receipt handles or ids, of which each character may be written as \u0061, take a third of it.
CALL_BYTES = 1024 * 1024
# A few short fields. No limit is lower: a body that has arrived with its head is held to nothing else.
SHORT_CALL_BYTES = 64 * 1024
# Configuration is small; only messages are large, and those go to the data plane.
CONTROL_BYTES = 256 * 1024
# A form of the console: names, and the ids of a page's selected rows.
FORM_BYTES = 64 * 1024


def of_messages(count: int) -> int:
    """Bytes of a request with up to `count` messages whose bodies have MAX_MESSAGE_BYTES together.

    Not more than what one request may have of the bytes in flight, but always enough for one message.
    """
    bodies = ENCODED_BYTES_PER_BYTE * settings.MAX_MESSAGE_BYTES
    most = settings.REQUESTS_IN_FLIGHT_BYTES - settings.REQUESTS_IN_FLIGHT_BYTES // RESERVED_PART
    return max(bodies + FIELDS_BYTES, min(bodies + count * FIELDS_BYTES, most))


def message() -> int:
    """POST /v1/messages."""
    return of_messages(1)


def batch() -> int:
    """POST /v1/messages/batch."""
    return of_messages(batches.MAX_MESSAGES)


def transaction() -> int:
    """POST /v1/transactions."""
    return of_messages(validation.MAX_MESSAGES)


def ack() -> int:
    """POST /v1/consumer-groups/{group}/ack: receipt handles, and messages that were made of the deliveries."""
    return max(CALL_BYTES, of_messages(forward.MAX_MESSAGES))


def bulk() -> int:
    """POST /v1/bulk: what one request may have at all, for each of its operations has its own limits."""
    return of_messages(batches.MAX_MESSAGES)


def call() -> int:
    """A call with receipt handles or ids."""
    return CALL_BYTES


def short_call() -> int:
    """A call of a few fields, as an end is."""
    return SHORT_CALL_BYTES
