"""What answers in the broker's place is named, with what it shows of itself and the way out."""

import pytest
from mqbroker_client import Broker, BrokerError, Producer, Retry
from mqbroker_client.aio import AsyncBroker, AsyncProducer
from mqbroker_client.core.errors import Unreachable

from tests.client.servers import Answer, scripted

NGINX = {"Server": "nginx/1.24.0", "Content-Type": "text/html"}
SEEN = "(Server 'nginx/1.24.0', Content-Type 'text/html', title '502 Bad Gateway')"
OTHERS = {
    "a gateway without a broker": (
        Answer(502, b"<html><head><title>502 Bad Gateway</title></head></html>", NGINX),
        f"HTTP 502 from URL is no answer of the broker's {SEEN}: a gateway has no broker behind it now",
    ),
    "a proxy that redirects": (
        Answer(301, b"", {"Location": "https://mq.example/v1/messages", "Server": "proxy"}),
        "HTTP 301 from URL is no answer of the broker's (Server 'proxy'): it redirects to "
        "https://mq.example/v1/messages, and no redirect is followed: give the broker's own address",
    ),
    "another server": (
        Answer(404, {"detail": "Not Found"}, {"Server": "uvicorn", "Content-Type": "application/json"}),
        "HTTP 404 from URL is no answer of the broker's (Server 'uvicorn', Content-Type 'application/json'): another "
        "server is there, or the path of the address is wrong: give the address that /v1 lies below",
    ),
    "a gateway's limit": (
        Answer(413, b"", {"Server": "nginx"}),
        "HTTP 413 from URL is no answer of the broker's (Server 'nginx'): a gateway takes no request of this size: "
        "raise its limit (nginx: client_max_body_size)",
    ),
    "a page of a log-in": (
        Answer(200, b"<title>Log\n in</title> mq_secret", {"Server": "sso"}),
        "HTTP 200 from URL is no answer of the broker's (Server 'sso', title 'Log in'): something else is at this "
        "address: give the broker's own",
    ),
    "a log-in": (
        Answer(401, b"", {"Server": "sso"}),
        "HTTP 401 from URL is no answer of the broker's (Server 'sso'): something before the broker asks for a log-in "
        "of its own: let requests with an API key pass",
    ),
}
ONCE = Retry(tries=1, seconds=5)


@pytest.mark.parametrize(("answer", "words"), OTHERS.values(), ids=OTHERS)
async def test_what_answers_in_the_brokers_place_is_named(answer: Answer, words: str) -> None:
    with scripted(answer) as server:
        with pytest.raises(BrokerError) as refused:
            Producer(Broker(server.url, "mq_secret", retry=ONCE), "shop").send("orders", b"1")
        async with AsyncBroker(server.url, "mq_secret", retry=ONCE) as broker:
            with pytest.raises(BrokerError) as refused_in_loop:
                await AsyncProducer(broker, "shop").send("orders", b"1")

    for error in (refused.value, refused_in_loop.value):
        assert error.detail.replace(server.url, "URL") == words
        assert "mq_secret" not in str(error)


def test_an_address_at_which_nothing_listens_is_named_without_the_classes_of_a_library() -> None:
    with pytest.raises(Unreachable) as refused:
        Producer(Broker("http://127.0.0.1:1", "mq_secret", retry=ONCE), "shop").send("orders", b"1")

    assert refused.value.detail == (
        "no answer from http://127.0.0.1:1: Failed to establish a new connection: [Errno 111] Connection refused"
    )
