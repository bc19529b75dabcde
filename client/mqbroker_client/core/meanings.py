"""What an answer means for messages that wait: the one table of which are kept, refused, and tried again later."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mqbroker_client.core import errors


class Meaning(Enum):
    """What follows from the answer to a half, for a local transaction that keeps and for messages that are kept."""

    #: The broker cannot answer now. The transaction keeps its messages; kept ones wait, and are sent later.
    AWAY = "away"
    #: The broker failed at this request, which may be stored: the same ids again are safe. The transaction keeps its
    #: messages, and the next one asks the broker.
    UNKNOWN = "unknown"
    #: The key, or the address, is wrong, whatever the message. The transaction rolls back; kept messages wait until
    #: that is mended.
    DENIED = "denied"
    #: This request is refused, and would be again. The transaction rolls back; a kept one is set apart.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Rule:
    """Answers with one meaning. `statuses` is from the first to the last."""

    meaning: Meaning
    statuses: range
    #: Whether the answer has a code of the broker's; None where that makes no difference.
    of_broker: bool | None = None
    codes: frozenset[str] | None = None


#: The first rule that fits counts; docs/barrier.md has the same table. Status 0 is no answer at all.
RULES: Sequence[Rule] = (
    Rule(Meaning.AWAY, range(1)),
    Rule(Meaning.AWAY, range(408, 409)),
    Rule(Meaning.AWAY, range(429, 430)),
    Rule(Meaning.AWAY, range(502, 505)),
    Rule(Meaning.UNKNOWN, range(500, 600), of_broker=True),
    # A gateway, or the server behind it, is in trouble.
    Rule(Meaning.AWAY, range(500, 600), of_broker=False),
    Rule(Meaning.DENIED, range(401, 402)),
    # `not_found` is a path that the broker has not: the address has one too many.
    Rule(Meaning.DENIED, range(403, 406), codes=frozenset({"no_permission", "not_found", "method_not_allowed"})),
    # Of a gateway, too: its limit of a request, whose size is the message's.
    Rule(Meaning.REFUSED, range(413, 414)),
    Rule(Meaning.REFUSED, range(400, 500), of_broker=True),
    # Another server at the address, a proxy that redirects, a page of a log-in: more of the same would follow, and the
    # messages would pile up without anyone noticing.
    Rule(Meaning.DENIED, range(100, 500), of_broker=False),
)


def meaning_of(error: errors.BrokerError) -> Meaning:
    """What follows from an error of the broker, or of what answers in its place."""
    of_broker = "code" in error.problem
    for rule in RULES:
        if error.status in rule.statuses and rule.of_broker in (None, of_broker) and _has_code(rule, error):
            return rule.meaning
    return Meaning.UNKNOWN


def _has_code(rule: Rule, error: errors.BrokerError) -> bool:
    return rule.codes is None or error.code in rule.codes
