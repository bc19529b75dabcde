"""Static files: read once, answered from memory, whatever the caller does with its connection.

`MQ_BURDENS=1 ./mq test tests/http/test_static_files.py -k callers -s` measures 1,000 callers on a quiet machine.
"""

import contextlib
import http.client
import re
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

import psutil
import pytest
from django.contrib.staticfiles import finders

from tests.broker import burdens, stalled
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker

LARGE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
SMALL = "/static/console/mark.svg"
# Copies of it would take 470 MB.
CALLERS = 1000 if burdens.IS_STRICT else 300
# A p99 needs some hundred sends while the callers hold what they asked for.
HELD_SECONDS = 5.0 if burdens.IS_STRICT else 0.0
# Threads and files that come and go with other requests.
SPARE = 8


def ask(
    broker: RunningBroker, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers by their lower-case names, and content."""
    with contextlib.closing(http.client.HTTPConnection(urlsplit(broker.url).netloc, timeout=120)) as connection:
        connection.request(method, path, headers=dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def content_of(path: str) -> bytes:
    """The installed file behind an address."""
    found = finders.find(path.removeprefix("/static/"))
    assert found
    with open(found, "rb") as file:
        return file.read()


@pytest.mark.parametrize(("path", "kind"), [(LARGE, "text/javascript; charset=utf-8"), (SMALL, "image/svg+xml")])
def test_a_file_is_answered_whole_with_what_a_browser_keeps_it_by(broker: RunningBroker, path: str, kind: str) -> None:
    status, headers, content = ask(broker, path)

    assert (status, headers["content-type"], content) == (200, kind, content_of(path))
    assert headers["cache-control"] == "max-age=60, public"
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'self'" in headers["content-security-policy"]
    assert ask(broker, path, method="HEAD")[1]["content-length"] == str(len(content))
    assert ask(broker, path, method="HEAD")[2] == b""


def test_a_browser_that_has_the_file_is_sent_none(broker: RunningBroker) -> None:
    _, headers, _ = ask(broker, LARGE)
    tag, modified = headers["etag"], headers["last-modified"]

    for known in ({"If-None-Match": tag}, {"If-None-Match": f'"old", W/{tag}'}, {"If-Modified-Since": modified}):
        status, answered, content = ask(broker, LARGE, known)
        assert (status, answered["etag"], answered.get("content-length"), content) == (304, tag, None, b"")
    old = {"If-None-Match": '"old"', "If-Modified-Since": modified}
    assert ask(broker, LARGE, old)[0] == 200
    assert ask(broker, LARGE, {"If-Modified-Since": "no time"})[0] == 200


@pytest.mark.parametrize(
    ("wanted", "start", "stop"), [("0-0", 0, 1), ("100-199", 100, 200), ("-5", -5, None), ("1000000-", 1000000, None)]
)
def test_a_range_is_answered_as_a_part(broker: RunningBroker, wanted: str, start: int, stop: int | None) -> None:
    whole = content_of(LARGE)

    status, headers, content = ask(broker, LARGE, {"Range": f"bytes={wanted}"})

    assert (status, content) == (206, whole[start:stop])
    first = start % len(whole)
    assert headers["content-range"] == f"bytes {first}-{first + len(content) - 1}/{len(whole)}"


def test_a_range_that_cannot_be_is_refused_and_one_that_is_not_understood_passed_over(broker: RunningBroker) -> None:
    whole = content_of(SMALL)

    assert ask(broker, SMALL, {"Range": f"bytes={len(whole)}-"})[0] == 416
    for several in ("bytes=0-1,3-4", "lines=1-2", "bytes=5-2", "bytes=-"):
        assert ask(broker, SMALL, {"Range": several})[::2] == (200, whole)
    assert ask(broker, SMALL, {"Range": "bytes=0-1", "If-Range": '"old"'})[::2] == (200, whole)


def test_a_file_is_only_read(broker: RunningBroker) -> None:
    status, headers, _ = ask(broker, SMALL, method="DELETE")

    assert (status, headers["allow"]) == (405, "GET, HEAD")


def test_every_file_that_the_pages_name_is_served_and_what_none_names_is_not(broker: RunningBroker) -> None:
    key = {"Authorization": f"Bearer {API_KEY}", "Accept": "text/html"}
    pages = ask(broker, "/docs", key)[2] + ask(broker, "/console/login/")[2]
    named = set(re.findall(r'"(/static/[^"?#]+)', pages.decode()))

    assert LARGE in named
    assert {path: ask(broker, path)[0] for path in named} == dict.fromkeys(named, 200)
    for unused in ("redoc/bundles/redoc.standalone.js", "swagger-ui-dist/swagger-ui-bundle.js.map"):
        assert ask(broker, f"/static/drf_spectacular_sidecar/{unused}")[0] == 404


def test_callers_that_read_nothing_of_a_large_file_cost_neither_memory_nor_threads_nor_files(
    broker: RunningBroker,
) -> None:
    process = psutil.Process(broker.webs[0].pid)
    assert ask(broker, LARGE)[0] == 200
    threads, files = process.num_threads(), process.num_fds()

    def read_nothing() -> None:
        with stalled.stalled(broker.url, stalled.get(LARGE), CALLERS) as callers:
            assert [caller.recv(12) for caller in callers] == [b"HTTP/1.1 200"] * CALLERS
            assert ask(broker, "/healthz")[0] == 200
            assert process.num_threads() <= threads + SPARE
            time.sleep(HELD_SECONDS)
        eventually(lambda: process.num_fds() <= files + SPARE)

    burden = burdens.burden_of(broker, read_nothing)

    burdens.hold(burden, burdens.WITHOUT_A_KEY_BYTES)
    assert burden.kept_bytes < burdens.WITHOUT_A_KEY_BYTES // 2
