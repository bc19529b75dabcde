"""A producer's processes: they run local transactions as a test says, and stop where it wants to look.

`python -m tests.barrier.local BINDING PLACE BROKER SOCKET`: a fork, with all modules imported, for each connection to
the socket. Each line on it is a JSON object.
"""

import asyncio
import json
import os
import signal
import socket
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

from mqbroker_client import Broker, HalfMessage, LocalTransactionState, Message, Producer, TransactionProducer
from mqbroker_client.aio import AsyncBroker, AsyncProducer, AsyncTransactionProducer
from mqbroker_client.barrier import Barrier

from tests.barrier.places import connect

if TYPE_CHECKING:
    from mqbroker_client.contrib.sqlalchemy import EngineBarrier
    from sqlalchemy.ext.asyncio import AsyncEngine

Run = Callable[[str, str | None], None]


def say(at: str, **fields: Any) -> None:
    print(json.dumps({"at": at, **fields}), flush=True)


def pause(at: str, **fields: Any) -> str:
    """Goes on with the next line of input, which it returns."""
    say(at, **fields)
    return sys.stdin.readline().strip()


class PausingProducer(Producer):
    """Stops after a half is stored, and before an end is sent."""

    def begin_messages(self, *args: Any, **options: Any) -> Any:
        begun = super().begin_messages(*args, **options)
        pause("half", transaction_id=str(begun.transaction_id))
        return begun

    def end(self, transaction_id: UUID, state: LocalTransactionState, **options: Any) -> Any:
        pause("ending", state=state.value)
        return super().end(transaction_id, state, **options)


class DriverOrders:
    """A listener of TransactionProducer: the half comes first."""

    def __init__(self, barrier: Barrier, isolation: str | None) -> None:
        self.barrier = barrier
        self.isolation = isolation

    def execute_local_transaction(self, half: HalfMessage, arg: Any) -> LocalTransactionState:
        order_id, customer_id = arg
        with closing(self.barrier.sessions.connect()) as connection:  # type: ignore[attr-defined]  # a driver's
            self._begin(connection)
            pause("begun", transaction_id=str(half.transaction_id))
            self.barrier.insert_commit(connection, half.transaction_id)
            connection.cursor().execute(insert(connection), (order_id, customer_id))
            if pause("half", transaction_id=str(half.transaction_id)) == "roll back":
                raise RuntimeError("the card is declined")
            connection.commit()
        return LocalTransactionState.COMMIT

    def check_local_transaction(self, half: HalfMessage) -> LocalTransactionState:
        raise AssertionError("the barrier answers")

    def _begin(self, connection: Any) -> None:
        if self.isolation:
            connection.cursor().execute(f"SET TRANSACTION ISOLATION LEVEL {self.isolation}")
        # The snapshot of the higher levels is that of the first statement.
        connection.cursor().execute("SELECT count(*) FROM orders")


def insert(connection: Any) -> str:
    mark = "?" if isinstance(connection, sqlite3.Connection) else "%s"
    return f"INSERT INTO orders VALUES ({mark}, {mark})"


def with_driver(place: dict[str, Any], broker: Broker, kind: type[DriverOrders] = DriverOrders) -> Run:
    barrier = Barrier(lambda: connect(place["url"]), place["group"])
    orders = TransactionProducer(Ending(broker, place["group"]), kind(barrier, place["isolation"]), barrier=barrier)

    def run(order_id: str, customer_id: str | None) -> None:
        sent = orders.send_message_in_transaction(Message(place["topic"], order_id.encode()), (order_id, customer_id))
        if sent.remark:
            raise RuntimeError(sent.remark)

    return run


class LateOrders(DriverOrders):
    """A mutant: its row is written after the COMMIT of its order."""

    def execute_local_transaction(self, half: HalfMessage, arg: Any) -> LocalTransactionState:
        with closing(self.barrier.sessions.connect()) as connection:  # type: ignore[attr-defined]  # a driver's
            connection.cursor().execute(insert(connection), arg)
            connection.commit()
            pause("half", transaction_id=str(half.transaction_id))
            self.barrier.insert_commit(connection, half.transaction_id)
            connection.commit()
        return LocalTransactionState.COMMIT


class Ending(PausingProducer):
    """Stops before an end is sent; its half is stored before the local transaction begins."""

    begin_messages = Producer.begin_messages


def with_django(place: dict[str, Any], broker: Broker) -> Run:
    from tests.barrier import site

    site.set_up(json.dumps(place), broker.url)
    from django.db import connection, transaction
    from mqbroker_client.contrib.django import send
    from mqbroker_client.contrib.django.apps import config

    config().__dict__["producer"] = PausingProducer(broker, place["group"])

    def run(order_id: str, customer_id: str | None) -> None:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO orders VALUES (%s, %s)", [order_id, customer_id])
            send(place["topic"], order_id)

    return run


def with_sqlalchemy(place: dict[str, Any], broker: Broker) -> Run:
    import sqlalchemy as sa
    from mqbroker_client.contrib.sqlalchemy import Outbox
    from sqlalchemy.orm import sessionmaker

    engine = sa.create_engine(engine_url(place["url"]), **isolation_of(place))
    validate_constraints(engine)
    outbox, maker = Outbox(PausingProducer(broker, place["group"]), engine), sessionmaker(engine)
    outbox.listen(maker)

    def run(order_id: str, customer_id: str | None) -> None:
        with maker.begin() as session:
            session.execute(sa.text("INSERT INTO orders VALUES (:o, :c)"), {"o": order_id, "c": customer_id})
            outbox.send(session, place["topic"], order_id)

    return run


def with_asyncio(place: dict[str, Any], broker: Broker) -> Run:
    import sqlalchemy as sa
    from mqbroker_client.contrib.sqlalchemy import Outbox
    from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

    engine = create_async_engine(engine_url(place["url"], "aiosqlite"), **isolation_of(place))
    validate_constraints(engine.sync_engine)
    outbox, maker = Outbox(PausingProducer(broker, place["group"]), engine), async_sessionmaker(engine)
    outbox.listen(maker)

    async def order(order_id: str, customer_id: str | None) -> None:
        async with maker.begin() as session:
            await session.execute(sa.text("INSERT INTO orders VALUES (:o, :c)"), {"o": order_id, "c": customer_id})
            outbox.send(session, place["topic"], order_id)
        await engine.dispose()

    return lambda order_id, customer_id: asyncio.run(order(order_id, customer_id))


class PausingAsyncProducer(AsyncProducer):
    """Stops before an end is sent."""

    async def end(self, transaction_id: UUID, state: LocalTransactionState, **options: Any) -> Any:
        pause("ending", state=state.value)
        return await super().end(transaction_id, state, **options)


@dataclass
class AsyncOrders:
    """A listener of AsyncTransactionProducer: the half comes first."""

    barrier: "EngineBarrier"
    engine: "AsyncEngine"

    async def execute_local_transaction(self, half: HalfMessage, arg: Any) -> LocalTransactionState:
        import sqlalchemy as sa
        from sqlalchemy.ext.asyncio import AsyncSession

        order_id, customer_id = arg
        async with AsyncSession(self.engine) as session, session.begin():
            await session.execute(sa.text("SELECT count(*) FROM orders"))
            pause("begun", transaction_id=str(half.transaction_id))
            await self.barrier.insert_commit_async(session, half.transaction_id)
            await session.execute(sa.text("INSERT INTO orders VALUES (:o, :c)"), {"o": order_id, "c": customer_id})
            if pause("half", transaction_id=str(half.transaction_id)) == "roll back":
                raise RuntimeError("the card is declined")
        return LocalTransactionState.COMMIT


def with_async_producer(place: dict[str, Any], broker: Broker) -> Run:
    from mqbroker_client.contrib.sqlalchemy import EngineBarrier
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(engine_url(place["url"], "aiosqlite"), **isolation_of(place))
    validate_constraints(engine.sync_engine)
    barrier = EngineBarrier(engine, place["group"])

    async def order(order_id: str, customer_id: str | None) -> None:
        async with AsyncBroker(broker.url, os.environ["API_KEY"]) as client:
            producer, listener = PausingAsyncProducer(client, place["group"]), AsyncOrders(barrier, engine)
            orders = AsyncTransactionProducer(producer, listener, barrier=barrier)
            message = Message(place["topic"], order_id.encode())
            sent = await orders.send_message_in_transaction(message, (order_id, customer_id))
        await engine.dispose()
        if sent.remark:
            raise RuntimeError(sent.remark)

    return lambda order_id, customer_id: asyncio.run(order(order_id, customer_id))


def validate_constraints(engine: Any) -> None:
    """SQLite does so for a connection that asks for it."""
    import sqlalchemy as sa

    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", lambda made, _: made.cursor().execute("PRAGMA foreign_keys = ON"))


def engine_url(url: str, sqlite_driver: str = "pysqlite") -> str:
    for scheme, driver in {
        "postgresql://": "postgresql+psycopg://",
        "mysql://": "mysql+pymysql://",
        "sqlite://": f"sqlite+{sqlite_driver}:///",
    }.items():
        url = url.replace(scheme, driver) if url.startswith(scheme) else url
    return url


def isolation_of(place: dict[str, Any]) -> dict[str, Any]:
    return {"isolation_level": place["isolation"].upper()} if place["isolation"] else {}


BINDINGS: dict[str, Callable[[dict[str, Any], Broker], Run]] = {
    "driver": with_driver,
    "late driver": partial(with_driver, kind=LateOrders),
    "django": with_django,
    "sqlalchemy": with_sqlalchemy,
    "asyncio": with_asyncio,
    "async producer": with_async_producer,
}


def main() -> None:
    binding, place, broker_url, path = sys.argv[1:]
    run = BINDINGS[binding](json.loads(place), Broker(broker_url, os.environ["API_KEY"]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{path}.new")
        listening.listen()
        os.rename(f"{path}.new", path)
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                serve(run, connection)
            connection.close()


def serve(run: Run, connection: socket.socket) -> NoReturn:
    """Runs orders until the test hangs up."""
    os.dup2(connection.fileno(), sys.stdin.fileno())
    os.dup2(connection.fileno(), sys.stdout.fileno())
    say("ready", pid=os.getpid())
    for line in sys.stdin:
        order = json.loads(line)
        try:
            run(order["order_id"], order.get("customer_id"))
        except Exception as error:  # noqa: BLE001  a test looks at whatever it is
            say("failed", error=type(error).__name__, detail=str(error))
        else:
            say("done")
    os._exit(0)


if __name__ == "__main__":
    main()
