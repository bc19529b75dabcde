"""A producer's endpoint that answers every check with COMMIT at once, with as little work as possible."""

import asyncio
import re
import sys

TRANSACTION = re.compile(rb'"transaction_id":"([0-9a-f-]{36})"')
LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)


class Endpoint(asyncio.Protocol):
    """One connection from the broker."""

    def __init__(self) -> None:
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (head := self._received.find(b"\r\n\r\n")) >= 0:
            found = LENGTH.search(self._received, 0, head)
            end = head + 4 + (int(found[1]) if found else 0)
            if len(self._received) < end:
                return
            self._answer(bytes(self._received[head + 4 : end]))
            del self._received[:end]

    def _answer(self, body: bytes) -> None:
        results = b",".join(
            b'{"transaction_id":"' + found + b'","state":"COMMIT"}'
            for found in dict.fromkeys(TRANSACTION.findall(body))
        )
        answer = b'{"results":[' + results + b"]}"
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))


async def serve(port: int) -> None:
    """Serves until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Endpoint, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
