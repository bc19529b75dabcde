"""Jobs as messages of this broker: a send for each job, and consumers that receive up to 32 messages at a time."""

import os

from tools.bench import load
from tools.bench.jobs import CONSUMERS, PRODUCERS, Times, paced, run_all
from tools.bench.load import Connection

GROUP = "/v1/consumer-groups/workers"
PORT = int(os.environ.get("JOBS_PORT", "0"))


def prepare() -> None:
    """Creates the topic."""

    async def create() -> None:
        connection = await Connection.open(PORT)
        await connection.ask("PUT", "/v1/topics/jobs", b"{}")

    load.run(create())


async def _producer(number: int, times: Times) -> None:
    connection = await Connection.open(PORT)
    async for due in paced(number):
        status, answer = await connection.post("/v1/messages", {"topic": "jobs", "body": str(due)})
        assert status == 201, answer
        times.note(due)


async def _consumer(_: int, times: Times) -> None:
    connection = await Connection.open(PORT)
    while True:
        asked = {"topic": "jobs", "wait_seconds": 1, "max_messages": 32}
        _, answer = await connection.post(f"{GROUP}/receive", asked)
        messages = answer["messages"]
        assert isinstance(messages, list)
        for message in messages:
            times.note(float(message["message"]["body"]))
        if messages:
            handles = [message["receipt_handle"] for message in messages]
            await connection.post(f"{GROUP}/ack", {"receipt_handles": handles})


def produce() -> None:
    """Sends jobs until the process is stopped."""
    run_all(_producer, "produce", PRODUCERS)


def consume() -> None:
    """Receives and acks jobs until the process is stopped."""
    run_all(_consumer, "consume", CONSUMERS)
