"""The administrative calls."""

from collections.abc import Mapping
from typing import Literal, TypedDict

from mqbroker_client.core.calls import Call, call, path, same
from mqbroker_client.core.documents import Document


class TopicSettings(TypedDict, total=False):
    """The settings of a topic.

    A setting that is left out keeps its value or gets its default; None means the broker's own setting.
    """

    queues: int
    reserved_hours: int | None
    permission: Literal["r", "w", "rw"]
    #: With a time zone: until this time the broker refuses sends with `SendsForbidden`.
    sends_from: str | None


class ProducerGroupSettings(TypedDict, total=False):
    """The settings of a producer group. A setting that is left out is treated as in `TopicSettings`."""

    reject_transaction_message: bool
    max_undecided: int | None
    checks_paused: bool
    api_keys: list[str] | None


class ConsumerGroupSettings(TypedDict, total=False):
    """The settings of a consumer group. A setting that is left out is treated as in `TopicSettings`."""

    start_at: Literal["earliest", "latest"]
    ordered: bool
    queue_order: Literal["turns", "priority"]
    fair_by: str | None
    #: by: sharding_key, property:NAME or group; in_flight, per_second, burst; values: limits of single values.
    limits: Mapping[str, object] | None
    max_reconsume_times: int | None
    retry_policy: Mapping[str, object]
    paused: bool


class EndpointSettings(TypedDict, total=False):
    """The settings of calls to an endpoint. A setting that is left out is treated as in `TopicSettings`."""

    max_batch: int
    timeout_seconds: float
    concurrency: int


def put(kind: str, name: str, settings: Mapping[str, object]) -> Call[Document]:
    """PUT of a topic or group: creates it or changes its settings."""
    return call("PUT", path(kind, name), settings, same)


def register_endpoint(group: str, url: str, secret: str, settings: EndpointSettings) -> Call[str]:
    """POST /v1/producer-groups/{group}/endpoints. The result is the id of the endpoint."""
    body = {"url": url, "secret": secret, **settings}
    return call("POST", path("producer-groups", group, "endpoints"), body, lambda answer: str(answer["id"]))


def delete_endpoint(group: str, endpoint_id: str) -> Call[Document]:
    """DELETE /v1/producer-groups/{group}/endpoints/{endpoint_id}."""
    return call("DELETE", path("producer-groups", group, "endpoints", endpoint_id), None, same)
