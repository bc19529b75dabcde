"""Properties of a message: the names that are reserved, the limits for the others, and the rule for keys."""

import re
from zlib import crc32

from store.errors import MessageIllegal, PropertiesTooLarge

MAX_PROPERTIES = 128
BLANK = re.compile(r"\s")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
KEY_RULE = "a key is not blank and has no blanks or control characters"

# Names with a special meaning in RocketMQ (MessageConst): RocketMQ's clients would misread properties with these names.
RESERVED_PROPERTIES = frozenset(
    [
        "KEYS",
        "TAGS",
        "WAIT",
        "DELAY",
        "RETRY_TOPIC",
        "REAL_TOPIC",
        "REAL_QID",
        "TRAN_MSG",
        "PGROUP",
        "MIN_OFFSET",
        "MAX_OFFSET",
        "BUYER_ID",
        "ORIGIN_MESSAGE_ID",
        "TRANSFER_FLAG",
        "CORRECTION_FLAG",
        "MQ2_FLAG",
        "RECONSUME_TIME",
        "MSG_REGION",
        "TRACE_ON",
        "UNIQ_KEY",
        "EXTEND_UNIQ_INFO",
        "MAX_RECONSUME_TIMES",
        "BORN_HOST",
        "CONSUME_START_TIME",
        "TRAN_PREPARED_QUEUE_OFFSET",
        "TRANSACTION_PREPARED_OFFSET",
        "TRANSACTION_CHECK_TIMES",
        "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "SHARDING_KEY",
        "__SHARDINGKEY",
        "__STARTDELIVERTIME",
        "__transactionId__",
        "TIMER_DELIVER_MS",
        "TIMER_DELAY_MS",
        "TIMER_DELAY_SEC",
        "TIMER_ENQUEUE_MS",
        "TIMER_DEQUEUE_MS",
        "TIMER_ROLL_TIMES",
        "TIMER_OUT_MS",
        "TIMER_DEL_UNIQKEY",
        "TIMER_DELAY_LEVEL",
        "TIMER_LOG_TIME",
        "INNER_NUM",
        "INNER_BASE",
        "DLQ_ORIGIN_TOPIC",
        "DLQ_ORIGIN_MESSAGE_ID",
        "POP_CK",
        "POP_CK_OFFSET",
        "1ST_POP_TIME",
        "CLUSTER",
        "INSTANCE_ID",
        "CORRELATION_ID",
        "REPLY_TO_CLIENT",
        "TTL",
        "ARRIVE_TIME",
        "PUSH_REPLY_TIME",
    ]
)

# Reserved names of properties whose meaning is a field of the broker's API. A half message may have its immunity as
# such a property: see `transactions.schedule`.
FIELDS = {
    "KEYS": "keys",
    "TAGS": "tags",
    "DELAY": "delay_level",
    "PGROUP": "producer_group",
    "UNIQ_KEY": "message_id",
    "SHARDING_KEY": "sharding_key",
    "__SHARDINGKEY": "sharding_key",
    "__STARTDELIVERTIME": "deliver_at",
    "__transactionId__": "transaction_id",
    "TIMER_DELIVER_MS": "deliver_at",
    "TIMER_DELAY_MS": "delay_seconds",
    "TIMER_DELAY_SEC": "delay_seconds",
    "TIMER_DELAY_LEVEL": "delay_level",
    "MAX_RECONSUME_TIMES": "max_reconsume_times",
    "BORN_HOST": "born_host",
    "CHECK_IMMUNITY_TIME_IN_SECONDS": "check_immunity_seconds of POST /v1/transactions",
}


def is_key(text: str) -> bool:
    """Whether a message may have this key. KEY_RULE is the rule in words."""
    return bool(text) and not BLANK.search(text) and not CONTROL.search(text)


def size_of(properties: dict[str, str]) -> int:
    """The bytes of names and values.

    Raises PropertiesTooLarge for more than MAX_PROPERTIES, MessageIllegal for a reserved or empty name or a control
    character.
    """
    if len(properties) > MAX_PROPERTIES:
        raise PropertiesTooLarge(f"There are {len(properties)} properties, the limit is {MAX_PROPERTIES}.")
    reserved = RESERVED_PROPERTIES.intersection(properties)
    if reserved:
        name = min(reserved)
        way_out = f"use the field {FIELDS[name]}" if name in FIELDS else "use another name"
        raise MessageIllegal(f"The property {name} is reserved by the broker: {way_out}.")
    if "" in properties:
        raise MessageIllegal("A property has an empty name: give each property a name.")
    if CONTROL.search("".join(properties)) or CONTROL.search("".join(properties.values())):
        name = next(name for name, value in properties.items() if CONTROL.search(name + value))
        raise MessageIllegal(f"The property {name[:80]!r} has a control character: leave it out of name and value.")
    return sum(len(name.encode()) + len(value.encode()) for name, value in properties.items())


def tags_code_of(tags: str | None) -> int:
    """The hash of the tags, by which a reader skips entries with other tags; 0 without tags."""
    return crc32(tags.encode()) if tags else 0
