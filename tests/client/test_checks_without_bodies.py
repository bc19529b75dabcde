"""Checks of messages that are too large for the producer's server: asked again without their bodies, and decided."""

from functools import partial
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from mqbroker_client import CheckListener, HalfMessage, LocalTransactionState, Producer

from tests.broker.characters import register
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import ended
from tests.broker.wire import Wire
from tests.client.servers import wsgi_server

MAX_REQUEST_BYTES = 100_000


class Server:
    """A producer's server that refuses larger requests, before the listener reads them."""

    def __init__(self) -> None:
        self.listener: CheckListener | None = None
        self.asked: list[HalfMessage] = []

    def listen(self, secret: str) -> None:
        self.listener = CheckListener(self.check, [secret])

    def check(self, half: HalfMessage) -> LocalTransactionState:
        self.asked.append(half)
        return LocalTransactionState.COMMIT

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        if self.listener is None or int(environ["CONTENT_LENGTH"]) > MAX_REQUEST_BYTES:
            environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            start_response("413 Content Too Large", [("Content-Length", "0")])
            return [b""]
        return self.listener.wsgi(environ, start_response)


def test_a_message_that_is_too_large_for_the_server_is_decided_without_its_body(
    broker: RunningBroker, wire: Wire, producer: Producer, orders: str
) -> None:
    server = Server()
    with wsgi_server(server) as url:
        server.listen(register(broker, producer.group, f"{url}/checks"))
        transaction = producer.begin(orders, b"x" * 200_000, keys="order-1")

        decided = eventually(partial(ended, wire, transaction.transaction_id))

    assert (decided["state"], decided["check_times"]) == ("COMMITTED", 1)
    [half] = server.asked
    assert (half.body_omitted, half.body, half.keys) == (True, b"", ("order-1",))
