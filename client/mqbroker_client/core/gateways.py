"""Describes in words what answered in place of the broker: a gateway, a redirecting proxy, or another server."""

import re
from collections.abc import Mapping

TITLE = re.compile(rb"<title>([^<]*)</title>", re.IGNORECASE)

#: For each status: what to do about an answer that has none of the broker's codes.
_WAY_OUT = {
    401: "something before the broker asks for a log-in of its own: let requests with an API key pass",
    404: "another server is there, or the path of the address is wrong: give the address that /v1 lies below",
    413: "a gateway takes no request of this size: raise its limit (nginx: client_max_body_size)",
    502: "a gateway has no broker behind it now",
    503: "a gateway has no broker behind it now",
    504: "a gateway waited for the broker in vain",
}


def words(url: str, status: int, headers: Mapping[str, str], body: bytes) -> str:
    """A sentence: who answered, as far as the answer shows it, and what to do.

    Of the answer's body it shows only the title, because another program may repeat the request, with the API key, in
    the body.
    """
    return f"HTTP {status} from {url} is no answer of the broker's{_seen(headers, body)}: {_way_out(status, headers)}"


def _seen(headers: Mapping[str, str], body: bytes) -> str:
    title = TITLE.search(body[:4096])
    seen = {
        "Server": headers.get("server"),
        "Content-Type": headers.get("content-type"),
        "title": title and " ".join(title[1].decode(errors="replace").split()),
    }
    found = [f"{name} {text[:80]!r}" for name, text in seen.items() if text]
    return f" ({', '.join(found)})" if found else ""


def _way_out(status: int, headers: Mapping[str, str]) -> str:
    if 300 <= status < 400:
        where = headers.get("location", "another address")[:200]
        return f"it redirects to {where}, and no redirect is followed: give the broker's own address"
    if status >= 500:
        return _WAY_OUT.get(status, "a gateway, or another server, is in trouble")
    return _WAY_OUT.get(status, "something else is at this address: give the broker's own")
