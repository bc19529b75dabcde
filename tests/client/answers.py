"""Answers of the broker as its contract words them, for the scripts of these tests."""

from tests.client.servers import Answer

TRANSACTION_ID = "01936d5c-7a10-7000-8000-000000000001"
MESSAGE_ID = "01936d5c-7a10-7000-8000-000000000002"
MOMENT = "2026-01-02T03:04:05.678901Z"

SENT = Answer(
    201,
    {
        "message_id": MESSAGE_ID,
        "topic": "orders",
        "queue_id": 1,
        "queue_offset": 7,
        "commit_log_offset": 42,
        "send_status": "SEND_OK",
        "stored_at": MOMENT,
    },
)
PREPARED = Answer(
    201,
    {
        "transaction_id": TRANSACTION_ID,
        "message_id": MESSAGE_ID,
        "commit_log_offset": 42,
        "state": "PREPARED",
        "next_check_at": MOMENT,
    },
)
COMMITTED = Answer(
    200,
    {
        "transaction_id": TRANSACTION_ID,
        "state": "COMMITTED",
        "messages": [{"message_id": MESSAGE_ID, "queue_id": 1, "queue_offset": 7}],
    },
)
STILL_PREPARED = Answer(202, {"transaction_id": TRANSACTION_ID, "state": "PREPARED", "messages": []})
CHECK = {
    "transaction_id": TRANSACTION_ID,
    "topic": "orders",
    "message_id": MESSAGE_ID,
    "keys": ["order-1"],
    "tags": "paid",
    "properties": {"region": "eu"},
    "body": "order 1",
    "check_times": 2,
    "born_at": MOMENT,
    "stored_at": MOMENT,
    "commit_log_offset": 42,
}
MESSAGE = {
    "message_id": MESSAGE_ID,
    "topic": "orders",
    "keys": ["order-1"],
    "born_at": MOMENT,
    "stored_at": MOMENT,
    "commit_log_offset": 42,
    "transaction_id": TRANSACTION_ID,
    "reconsume_times": 1,
}
ENTRY: dict[str, object] = {
    "message": MESSAGE | {"body_base64": "/wA="},
    "queue_id": 1,
    "queue_offset": 7,
    "delivery_attempt": 2,
    "receipt_handle": "receipt-1",
}


def problem(status: int, code: str, detail: str, **members: object) -> Answer:
    return Answer(
        status,
        {"type": "about:blank", "title": code, "status": status, "code": code, "detail": detail, **members},
        {"Content-Type": "application/problem+json"},
    )
