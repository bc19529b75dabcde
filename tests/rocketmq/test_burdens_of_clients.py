"""What one key's clients hold of the process for RocketMQ's clients is bounded, and other keys' sends go on.

`MQ_LONG=1 MQ_BURDENS=1 ./mq test tests/rocketmq/test_burdens_of_clients.py -s` prints memory before, at the worst and
30 s after, and the times of another key's sends, and holds what is promised of them.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import grpc.aio
import pytest

from mqbroker.rocketmq.call import MAX_CALLS
from mqbroker.rocketmq.protocol.definition_pb2 import MessageQueue, Publishing, Resource, Settings
from mqbroker.rocketmq.protocol.service_pb2 import (
    NotifyClientTerminationRequest,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    SendMessageRequest,
    SendMessageResponse,
    TelemetryCommand,
)
from tests.broker.burdens import WITH_A_KEY_BYTES, hold
from tests.broker.characters import name
from tests.broker.running import RunningBroker
from tests.rocketmq.burdens import burden_of
from tests.rocketmq.conftest import Gateway
from tests.rocketmq.stub import SERVICE, Client, message, seconds
from tests.rocketmq.test_access_of_clients import made_key

OK, NOTHING, TOO_MANY = 20000, 40401, 42900
MOST_OF_KEY = MAX_CALLS * 5 // 8


def naming(number: int, topics: int = 1000) -> Settings:
    """Settings of a producer that name topics which no other ones name."""
    return Settings(publishing=Publishing(topics=[Resource(name=f"t{number}-{each}") for each in range(topics)]))


def settings_without_end(address: str, key: str) -> None:
    """One stream, whose client sends settings again and again."""
    with Client(address, key) as client, client.telemetry() as stream:
        for number in range(1000):
            stream.is_told(naming(number))


def settings_that_are_not_read(address: str, key: str) -> None:
    """One stream of a client that takes no answer."""
    commands = (TelemetryCommand(settings=naming(number)) for number in range(100_000))
    with Client(address, key) as client:
        open_stream = client.channel.stream_stream(
            f"/{SERVICE}/Telemetry", TelemetryCommand.SerializeToString, TelemetryCommand.FromString
        )
        call = open_stream(commands, timeout=60, metadata=client.metadata())
        time.sleep(4)
        call.cancel()


LOADS: dict[str, tuple[list[str], Callable[[str, str], None]]] = {
    "settings without end": (["metrics"], settings_without_end),
    "settings that name the key's topics": (["produce:*"], settings_without_end),
    "settings that are not read": (["produce:*"], settings_that_are_not_read),
}


@pytest.mark.parametrize("load", LOADS)
def test_one_stream_takes_a_bounded_part_of_memory_and_time(load: str, broker: RunningBroker, plain: Gateway) -> None:
    scopes, work = LOADS[load]
    key = made_key(broker, scopes)["key"]

    burden = burden_of(plain, broker, lambda: work(plain.address, key))

    hold(burden, WITH_A_KEY_BYTES)


class Crowd:
    """Many clients of a key over few connections."""

    def __init__(self, address: str, key: str) -> None:
        self._channels = [grpc.aio.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(4)]
        self._signs = Client(address, key)

    def call(self, kind: str, name: str, request: Any, answer: Any, number: int, given: Any = None) -> Any:
        """A call of a client by its number."""
        metadata = dict(self._signs.metadata()) | {"x-mq-client-id": f"client-{number}"}
        made = getattr(self._channels[number % 4], kind)(
            f"/{SERVICE}/{name}", type(request).SerializeToString, answer.FromString
        )
        return made(given or request, timeout=600, metadata=tuple(metadata.items()))

    async def stream(self, number: int) -> tuple[Any, int]:
        """A client's stream, and the code that its settings are answered."""
        command = TelemetryCommand(settings=naming(number, 200))

        async def says() -> AsyncIterator[TelemetryCommand]:
            yield command
            # The stream ends with its commands.
            await asyncio.Event().wait()

        stream = self.call("stream_stream", "Telemetry", command, TelemetryCommand, number, says())
        return stream, (await stream.read()).status.code

    async def send(self) -> int:
        request = SendMessageRequest(messages=[message("orders", b"tea")])
        return int((await self.call("unary_unary", "SendMessage", request, SendMessageResponse, 0)).status.code)

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()
        self._signs.channel.close()


@pytest.mark.long
def test_streams_of_one_key_are_bounded_and_leave_room_to_others(broker: RunningBroker, plain: Gateway) -> None:
    key, codes, sent = made_key(broker, ["produce:*"])["key"], Counter[int](), []

    async def open_them() -> None:
        crowd = Crowd(plain.address, key)
        opened = [await crowd.stream(number) for number in range(MOST_OF_KEY + 100)]
        codes.update(code for _, code in opened)
        sent.append(await crowd.send())
        for number, (stream, _) in enumerate(opened):
            stream.cancel()
            if number % 10 == 0:
                # 1,250 at once hold up the process for a third of a second.
                await asyncio.sleep(0.02)
        while (code := await crowd.send()) != OK:
            assert code == TOO_MANY
        await crowd.close()

    burden = burden_of(plain, broker, lambda: asyncio.run(open_them()))

    assert codes == {OK: MOST_OF_KEY, TOO_MANY: 100}
    assert sent == [TOO_MANY]
    hold(burden, WITH_A_KEY_BYTES)


@pytest.mark.long
def test_long_polls_of_one_key_take_a_bounded_part_of_memory(broker: RunningBroker, plain: Gateway) -> None:
    key, group, topic = made_key(broker, ["consume:*", "read:*", "produce:*"])["key"], name("group"), name("orders")
    request = ReceiveMessageRequest(
        group=Resource(name=group),
        message_queue=MessageQueue(topic=Resource(name=topic), id=-1),
        long_polling_timeout=seconds(20),
    )

    async def wait(crowd: Crowd, number: int) -> int:
        answers = crowd.call("unary_stream", "ReceiveMessage", request, ReceiveMessageResponse, number)
        codes = [int(answer.status.code) async for answer in answers]
        return codes[0]

    async def wait_for_nothing() -> Counter[int]:
        crowd = Crowd(plain.address, key)
        codes = Counter(await asyncio.gather(*(wait(crowd, number) for number in range(MOST_OF_KEY + 500))))
        await crowd.close()
        return codes

    codes = Counter[int]()
    burden = burden_of(plain, broker, lambda: codes.update(asyncio.run(wait_for_nothing())))

    assert codes.keys() <= {NOTHING, TOO_MANY}
    hold(burden, WITH_A_KEY_BYTES)


@pytest.mark.parametrize("what", ["an id", "a signature"])
def test_what_is_kept_of_the_headers_of_a_call_is_bounded(what: str, client: Client) -> None:
    given = dict(client.metadata())
    if what == "an id":
        given["x-mq-client-id"] = "x" * 256
    else:
        given["authorization"] += "x" * 1000

    code = client.call(
        "NotifyClientTermination", NotifyClientTerminationRequest(), metadata=tuple(given.items())
    ).status.code

    assert code == (40000 if what == "an id" else 40100)
