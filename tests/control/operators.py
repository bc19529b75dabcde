"""An operator who administers the broker over HTTP."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import urllib3

from tests.broker.wire import Answer, Document, Wire


@dataclass(frozen=True)
class Page:
    """An answer that is no JSON. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str


class Operator(Wire):
    """A caller with a key; by default with one that may do everything."""

    def sends_in_chunks(self, method: str, path: str, *chunks: bytes) -> Answer:
        """A request whose body comes without a length before it."""
        headers = {"Authorization": f"Bearer {self.api_key}"}
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=120)
        connection.request(method, path, iter(chunks), headers, encode_chunked=True)
        answer = connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        found = Answer(answer.status, named, json.loads(answer.read()))
        connection.close()
        return found

    def asks(self, method: str, path: str, fields: Mapping[str, Any] | None) -> Answer:
        """A call with these fields; None: without a body."""
        return self.call(method, path, None if fields is None else json.dumps(fields).encode())

    def put(self, path: str, **fields: Any) -> Answer:
        return self.call("PUT", path, json.dumps(fields).encode())

    def make(self, path: str, **fields: Any) -> Answer:
        return self.post(path, fields)

    def delete(self, path: str) -> Answer:
        return self.call("DELETE", path)

    def page(self, path: str, **headers: str) -> Page:
        """What is at a path, whatever it is; redirects are not followed."""
        key = {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}
        answer = urllib3.request(
            "GET", self.url + path, headers={**key, **headers}, redirect=False, retries=False, timeout=60
        )
        return Page(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.data.decode())

    def reads(self, path: str) -> Document:
        """The document at a path, which must be there."""
        answer = self.get(path)
        assert answer.status == 200, answer
        found: Document = answer.document
        return found

    def walks(self, path: str, limit: int = 2) -> list[Document]:
        """Every result of a list, page by page."""
        found: list[Document] = []
        cursor = ""
        while True:
            join = "&" if "?" in path else "?"
            page = self.reads(f"{path}{join}limit={limit}{cursor}")
            assert len(page["results"]) <= limit
            found += page["results"]
            if page["next"] is None:
                return found
            cursor = f"&cursor={page['next']}"


def illegal(answer: Answer) -> str:
    """The sentence that says which rule a request broke."""
    problem = answer.problem
    assert (problem["status"], problem["code"]) == (422, "message_illegal")
    sentence: str = problem["detail"]
    return sentence
