"""Every kind of caller: keys with each scope, bad keys, and users of the console."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.broker.wire import Answer

OWN = {"topic": "own-orders", "group": "own-coupons"}
KEYS: dict[str, list[str]] = {
    "produce": ["produce:own-*"],
    "consume": ["consume:own-*"],
    "read": ["read:own-*"],
    "metrics": ["metrics"],
    "manage": ["manage"],
    "consume and read": ["consume:own-*", "read:own-*"],
    "consume, and read of another topic": ["consume:own-*", "read:other-*"],
    "read, and consume of another group": ["consume:other-*", "read:own-*"],
    "manage and read": ["manage", "read:own-*"],
    "manage and consume": ["manage", "consume:own-*"],
    "all, but of other names": ["produce:other-*", "consume:other-*", "read:other-*", "metrics"],
    "every scope": ["produce:*", "consume:*", "read:*", "metrics", "manage"],
}


def granted(scopes: list[str]) -> set[str]:
    """The scopes as the page's rows name them: for the own topic and group, and `verb:` for some of that verb."""
    plain = {scope if ":" not in scope else scope.partition(":")[0] + ":" for scope in scopes}
    verbs = {scope.partition(":")[0] for scope in scopes if scope.endswith((":own-*", ":*"))}
    return plain | {f"{verb}:{OWN['group' if verb == 'consume' else 'topic']}" for verb in verbs}


@dataclass(frozen=True)
class Principal:
    """A caller, by the headers it sends."""

    name: str
    headers: dict[str, str]
    scopes: frozenset[str] | None = None
    role: str | None = None


def ask(url: str, headers: dict[str, str], method: str, path: str, document: Any = None) -> Answer:
    """One request with exactly these headers; an answer that is no JSON is its text."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    body = None if document is None else json.dumps(document).encode()
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    named = {name.lower(): value for name, value in answer.getheaders()}
    is_json = "json" in named.get("content-type", "")
    return Answer(answer.status, named, json.loads(data) if is_json else data.decode())
