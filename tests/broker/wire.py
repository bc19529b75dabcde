"""Plain HTTP, for tests that must see the wire: status, headers and the whole document."""

import contextlib
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

# A JSON object as it comes and goes.
Document = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    document: Any

    @property
    def problem(self) -> Document:
        """The problem document of a refusal, which must be one in every respect."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.document["status"] == self.status
        found: Document = self.document
        return found


@dataclass(frozen=True)
class Wire:
    """One caller of one web process."""

    url: str
    api_key: str | None

    def get(self, path: str) -> Answer:
        return self.call("GET", path)

    def post(self, path: str, document: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
        return self.call("POST", path, json.dumps(document).encode(), headers)

    def bulk(self, *operations: Mapping[str, Any]) -> list[Document]:
        """The results of POST /v1/bulk."""
        answer = self.post("/v1/bulk", {"operations": operations})
        assert answer.status == 200, answer
        results: list[Document] = answer.document["results"]
        return results

    def call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request over a connection of its own."""
        return self.ask(method, path, body, headers).answer()

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> "Request":
        """Sends a request and returns at once; its answer may take its time."""
        key = {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=120)
        connection.request(method, path, body, {**key, **(headers or {})})
        return Request(connection)


@dataclass(frozen=True)
class Request:
    """A request that was sent."""

    connection: http.client.HTTPConnection

    def answer(self) -> Answer:
        """Waits for the answer."""
        with contextlib.closing(self.connection):
            answer = self.connection.getresponse()
            data = answer.read()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, named, json.loads(data) if data else None)


def problem(status: int, code: str, detail: str, **more: object) -> Document:
    """The whole document of a refusal, to hold an answer against."""
    title = code.replace("_", " ").capitalize()
    kind = f"urn:mqbroker:problem:{code}"
    return {"type": kind, "title": title, "status": status, "detail": detail, "code": code, **more}
