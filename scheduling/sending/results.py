"""The answers to sends: the structs that the API encodes and describes in its schema."""

import uuid
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from store.messages import Time


class Sent(msgspec.Struct, gc=False):
    """A stored message and where it became visible: `queue_offset` is null while it is delayed, or when recalled."""

    message_id: uuid.UUID
    topic: str
    queue_id: int
    queue_offset: int | None
    commit_log_offset: int
    stored_at: Time
    send_status: Literal["SEND_OK"] = "SEND_OK"
    deliver_at: Time | UnsetType = UNSET
    recall_handle: str | UnsetType = UNSET
    duplicate: bool | UnsetType = UNSET
    recalled: bool | UnsetType = UNSET
