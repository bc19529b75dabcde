"""Settings for operators: texts that the console shows, and how long statistics are kept."""

from mqbroker.environment import env

CONSOLE_READING_SECONDS = env.whole(
    "CONSOLE_READING_SECONDS",
    4,
    "Age up to which the console's overview shows a reading of this process again, in every tab. A reading that took"
    " long is shown for longer, up to 9 s, so that open tabs cost less. 0: no reading is shown again.",
)
HISTORY_DAYS = env.whole(
    "HISTORY_DAYS",
    7,
    "Days for which the console's charts have figures by the minute; 0: no figures are recorded.",
    0,
    366,
)
ATTENTION_UNACKED_SECONDS = env.whole(
    "ATTENTION_UNACKED_SECONDS",
    600,
    "The console's overview names a consumer group whose oldest unacked message has waited for longer than this.",
    minimum=1,
)
ATTENTION_LAG = env.whole(
    "ATTENTION_LAG", 100_000, "The console's overview names a consumer group with a larger lag than this."
)
ATTENTION_UNASKED_SECONDS = env.whole(
    "ATTENTION_UNASKED_SECONDS",
    300,
    "The console's overview names a producer group whose oldest transaction has been pending for longer than this, "
    "if the broker cannot call an endpoint of the group: until then its producers may end the transaction, or poll "
    "for its check.",
)
ATTENTION_FREE_PERCENT = env.whole(
    "ATTENTION_FREE_PERCENT",
    10,
    "The console names the disk of the embedded PostgreSQL if less than this percentage is free.",
)
