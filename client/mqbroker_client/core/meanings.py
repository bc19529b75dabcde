"""A table: for each answer of the broker, whether kept messages stay, are refused, or are tried again later."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mqbroker_client.core import errors


class Meaning(Enum):
    """The consequence of an answer to a half message, for a transaction that keeps its messages and
    for kept messages.
    """

    #: The broker cannot answer now. A transaction keeps its messages; kept messages wait and are sent later.
    AWAY = "away"
    #: The broker failed during the request, which may have been stored; repeating it with the same ids is safe. A
    #: transaction keeps its messages, and the next transaction asks the broker.
    UNKNOWN = "unknown"
    #: The key or the address is wrong, for any message. A transaction rolls back; kept messages wait until it is
    #: corrected.
    DENIED = "denied"
    #: The broker refuses this request, and would refuse it again. A transaction rolls back; kept messages are set
    #: apart.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Rule:
    """Answers with the same meaning. `statuses` is the range of their HTTP statuses."""

    meaning: Meaning
    statuses: range
    #: True: the rule is for answers that have one of the broker's codes. False: for answers without such a code. None:
    #: for both.
    of_broker: bool | None = None
    codes: frozenset[str] | None = None


#: The first matching rule counts; docs/barrier.md has the same table. Status 0 means no answer at all.
RULES: Sequence[Rule] = (
    Rule(Meaning.AWAY, range(1)),
    Rule(Meaning.AWAY, range(408, 409)),
    Rule(Meaning.AWAY, range(429, 430)),
    Rule(Meaning.AWAY, range(502, 505)),
    Rule(Meaning.UNKNOWN, range(500, 600), of_broker=True),
    # A gateway, or the server behind it, fails.
    Rule(Meaning.AWAY, range(500, 600), of_broker=False),
    Rule(Meaning.DENIED, range(401, 402)),
    # `not_found` means that the broker does not have this path: the address contains a path too many.
    Rule(Meaning.DENIED, range(403, 406), codes=frozenset({"no_permission", "not_found", "method_not_allowed"})),
    # This answer may also come from a gateway that limits the size of a request. The size depends on the message.
    Rule(Meaning.REFUSED, range(413, 414)),
    Rule(Meaning.REFUSED, range(400, 500), of_broker=True),
    # Another server at the address, a redirecting proxy, or a log-in page: all further requests would fail too, and
    # messages would be kept without anyone noticing.
    Rule(Meaning.DENIED, range(100, 500), of_broker=False),
)


def meaning_of(error: errors.BrokerError) -> Meaning:
    """The meaning of an error from the broker, or from a program that answered in its place."""
    of_broker = "code" in error.problem
    for rule in RULES:
        if error.status in rule.statuses and rule.of_broker in (None, of_broker) and _has_code(rule, error):
            return rule.meaning
    return Meaning.UNKNOWN


def _has_code(rule: Rule, error: errors.BrokerError) -> bool:
    return rule.codes is None or error.code in rule.codes
