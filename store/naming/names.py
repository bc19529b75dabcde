"""Names of topics, groups and subscriptions: RocketMQ's characters, and a limit for each kind of name."""

import re

# Of a topic and of a producer group, as in RocketMQ.
MAX_CHARACTERS = 127
# As a class of a regular expression takes them.
CHARACTERS = "%|a-zA-Z0-9_-"

# Topics of the broker's own begin with these: the retries and the dead letters of a group.
RETRY_PREFIX = "%RETRY%"
DEAD_LETTER_PREFIX = "%DLQ%"
# And these are single ones: of delayed messages, of discarded halves, and RocketMQ's two of transactions, which are
# views here.
SCHEDULE = "SCHEDULE_TOPIC_XXXX"
DISCARDED = "TRANS_CHECK_MAX_TIME_TOPIC"
HALF_MESSAGES = "RMQ_SYS_TRANS_HALF_TOPIC"
ENDS = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
SYSTEM = frozenset((SCHEDULE, DISCARDED, HALF_MESSAGES, ENDS))

_name = re.compile(f"[{CHARACTERS}]+")


def is_name(text: str, max_characters: int = MAX_CHARACTERS) -> bool:
    """Whether a name may be this text."""
    return len(text) <= max_characters and _name.fullmatch(text) is not None


def rule(max_characters: int = MAX_CHARACTERS) -> str:
    """What a name is, for the refusal of a text that is none."""
    return f"1 to {max_characters} letters, digits and % | _ -"
