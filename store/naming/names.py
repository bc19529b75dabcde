"""Names of topics, groups and subscriptions: RocketMQ's characters, and a limit for each kind of name."""

import re

# The most characters of a topic and of a producer group, as in RocketMQ.
MAX_CHARACTERS = 127
# The characters of names, as in a class of a regular expression.
CHARACTERS = "%|a-zA-Z0-9_-"

# Prefixes of the broker's own topics: the retries and the dead letters of a group.
RETRY_PREFIX = "%RETRY%"
DEAD_LETTER_PREFIX = "%DLQ%"
# Other topics of the broker itself: for delayed messages, for discarded half messages, and RocketMQ's two topics of
# transactions, which are views of tables.
SCHEDULE = "SCHEDULE_TOPIC_XXXX"
DISCARDED = "TRANS_CHECK_MAX_TIME_TOPIC"
HALF_MESSAGES = "RMQ_SYS_TRANS_HALF_TOPIC"
ENDS = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
SYSTEM = frozenset((SCHEDULE, DISCARDED, HALF_MESSAGES, ENDS))

_name = re.compile(f"[{CHARACTERS}]+")


def is_name(text: str, max_characters: int = MAX_CHARACTERS) -> bool:
    """Whether this text is a valid name."""
    return len(text) <= max_characters and _name.fullmatch(text) is not None


def rule(max_characters: int = MAX_CHARACTERS) -> str:
    """The rule for names in words, for the refusal of an invalid name."""
    return f"1 to {max_characters} letters, digits and % | _ -"
