"""The maximum size of a request in bytes, for each call. MAX_MESSAGE_BYTES limits decoded bodies instead."""

from django.conf import settings

from delivery.receipts import forward
from scheduling.sending import batches
from store.messages import MAX_PROPERTIES_BYTES
from store.process.budget import RESERVED_PART
from transactions.operations import validation

# The longest JSON of a valid body is base64, which has four characters for three bytes, each of them perhaps escaped as
# \u002B. A text is shorter: JSON needs at most six bytes for one byte, such as \u0001.
ENCODED_BYTES_PER_BYTE = 8
# The most bytes of JSON for the other fields of a message. Tags, keys and properties have 16 KiB together; a byte is
# longest in JSON if it is a key of one character, "\u00XX" with quotes and comma. The other fields have short limits.
FIELDS_BYTES = 9 * MAX_PROPERTIES_BYTES + 16 * 1024
# The most bytes of a call with 1,000 receipt handles or ids, which take a third of these bytes if each character is
# escaped as \u0061.
CALL_BYTES = 1024 * 1024
# The maximum bytes of a call with a few short fields. No limit is lower, so a body of this size that arrived with its
# head needs no other check.
SHORT_CALL_BYTES = 64 * 1024
# The most bytes of a request to the control plane, which only contains configuration, no messages.
CONTROL_BYTES = 256 * 1024
# The most bytes of a form of the console, with names and the ids of selected rows.
FORM_BYTES = 64 * 1024


def of_messages(count: int) -> int:
    """The maximum bytes of a request with up to `count` messages whose bodies together have MAX_MESSAGE_BYTES.

    Limited by the bytes that one request may have in flight, but always enough for one message.
    """
    bodies = ENCODED_BYTES_PER_BYTE * settings.MAX_MESSAGE_BYTES
    most = settings.REQUESTS_IN_FLIGHT_BYTES - settings.REQUESTS_IN_FLIGHT_BYTES // RESERVED_PART
    return max(bodies + FIELDS_BYTES, min(bodies + count * FIELDS_BYTES, most))


def message() -> int:
    """The bytes of a `POST /v1/messages`."""
    return of_messages(1)


def batch() -> int:
    """The bytes of a `POST /v1/messages/batch`."""
    return of_messages(batches.MAX_MESSAGES)


def transaction() -> int:
    """The bytes of a `POST /v1/transactions`."""
    return of_messages(validation.MAX_MESSAGES)


def ack() -> int:
    """The maximum bytes of POST /v1/consumer-groups/{group}/ack: receipt handles, and messages to send."""
    return max(CALL_BYTES, of_messages(forward.MAX_MESSAGES))


def bulk() -> int:
    """The maximum bytes of POST /v1/bulk: the maximum of any request; each operation also has its own limits."""
    return of_messages(batches.MAX_MESSAGES)


def call() -> int:
    """The maximum bytes of a call with many receipt handles or ids."""
    return CALL_BYTES


def short_call() -> int:
    """The maximum bytes of a call with a few fields, such as an end."""
    return SHORT_CALL_BYTES
