"""Names that the broker keeps for itself: topics, and properties with a meaning of their own in RocketMQ."""

SYSTEM_PREFIXES = ("%RETRY%", "%DLQ%")
SYSTEM_TOPICS = frozenset(
    [
        "SCHEDULE_TOPIC_XXXX",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    ]
)

# A half message may bring its immunity as this property.
IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
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

# Those whose meaning a field has here.
FIELD_INSTEAD = {
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
