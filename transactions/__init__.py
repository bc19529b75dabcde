"""The producer's side: half messages, the ends that decide them, the checks that ask producers, and outboxes."""

from typing import Literal

State = Literal["PREPARED", "COMMITTED", "ROLLED_BACK", "DISCARDED"]
Decision = Literal["COMMIT", "ROLLBACK", "UNKNOWN", "DISCARD", "RESUME"]
Decider = Literal["producer", "check", "operator", "limit"]
# The states that answer a check.
CheckAnswer = Literal["COMMIT", "ROLLBACK", "UNKNOWN"]
# A state in a producer's request. RocketMQ's spellings are accepted too, but not used in answers.
GivenState = Literal["COMMIT", "ROLLBACK", "UNKNOWN", "COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW"]
STATE_OF: dict[GivenState, CheckAnswer] = {
    "COMMIT": "COMMIT",
    "ROLLBACK": "ROLLBACK",
    "UNKNOWN": "UNKNOWN",
    "COMMIT_MESSAGE": "COMMIT",
    "ROLLBACK_MESSAGE": "ROLLBACK",
    "UNKNOW": "UNKNOWN",
}
