"""The administrative calls."""

from collections.abc import Mapping
from typing import Any

from mqbroker_client.calls import Call, Document, call, path, same


def put(kind: str, name: str, settings: Mapping[str, Any]) -> Call[Document]:
    """PUT of a topic or group: creates it, or changes its settings."""
    return call("PUT", path(kind, name), settings, same)


def register_endpoint(group: str, url: str, secret: str, settings: Mapping[str, Any]) -> Call[str]:
    """POST /v1/producer-groups/{group}/endpoints: the id of the endpoint."""
    body = {"url": url, "secret": secret, **settings}
    return call("POST", path("producer-groups", group, "endpoints"), body, lambda answer: str(answer["id"]))


def delete_endpoint(group: str, endpoint_id: str) -> Call[Document]:
    """DELETE /v1/producer-groups/{group}/endpoints/{endpoint_id}."""
    return call("DELETE", path("producer-groups", group, "endpoints", endpoint_id), None, same)
