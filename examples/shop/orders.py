"""The order service: pays an order in its own database, together with the order's message, and answers checks."""

import json
import logging
import os
import signal
import sqlite3
import sys
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from mqbroker_client import Broker, BrokerError, CheckPoller, HalfMessage, LocalTransactionState, Message, Producer
from mqbroker_client.barrier import Barrier
from mqbroker_client.barrier.transactional import TransactionProducer
from mqbroker_client.core.errors import Unreachable

from examples.shop import accidents

AMOUNT_CENTS = 4_200
PAID, DECLINED, NOT_TAKEN = "paid", "declined", "not taken"
ANSWERS = {LocalTransactionState.COMMIT: PAID, LocalTransactionState.ROLLBACK: DECLINED}


@dataclass(frozen=True)
class OrderBook:
    """The service's database: the orders that are paid, and the barrier."""

    path: Path

    def make(self) -> None:
        with self.connect() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE IF NOT EXISTS paid (order_id TEXT PRIMARY KEY, amount_cents INTEGER)")
        with suppress(sqlite3.OperationalError):  # it is there
            Barrier(self.connect, "").create_table()

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=10)

    def paid(self) -> set[str]:
        with self.connect() as connection:
            return {order_id for (order_id,) in connection.execute("SELECT order_id FROM paid")}


@dataclass(frozen=True)
class AccidentProducer(Producer):
    """A producer whose ends get lost as the accidents of the orders say."""

    happens: dict[UUID, accidents.Accident | None] = field(default_factory=dict)

    def end(self, transaction_id, state, **options):  # type: ignore[no-untyped-def]  # the types are those of Producer.end
        accident = self.happens.pop(transaction_id)
        if accident is accidents.Accident.CRASH:
            os.kill(os.getpid(), signal.SIGKILL)
        if accident in accidents.LOSES_END:
            raise Unreachable("the accident of this order", code="unreachable")
        return super().end(transaction_id, state, **options)


@dataclass(frozen=True)
class OrderService:
    """Also the listener of a TransactionProducer, without a check: payment and barrier's row are inserted together."""

    producer: AccidentProducer
    book: OrderBook
    barrier: Barrier
    topic: str

    def take(self, order_id: UUID, number: int) -> str:
        """The answer to the customer. The order's id is the transaction's id, so an order sent twice is one order."""
        accident = self.producer.happens[order_id] = accidents.of_order(number)
        body = json.dumps({"order_id": str(order_id), "amount_cents": AMOUNT_CENTS}).encode()
        message = Message(self.topic, body, keys=[str(order_id)], message_id=order_id)
        transactions = TransactionProducer(self.producer, self, barrier=self.barrier)
        try:
            sent = transactions.send_message_in_transaction(message, accident, transaction_id=order_id)
        except BrokerError:
            # No half is confirmed: nothing was paid. If the half was stored after all, its check rolls it back.
            return NOT_TAKEN
        return ANSWERS.get(sent.state, NOT_TAKEN)

    def execute_local_transaction(self, half: HalfMessage, arg: object) -> LocalTransactionState:
        with closing(self.book.connect()) as transaction:
            self.barrier.insert_commit(transaction, half.transaction_id)
            transaction.execute("INSERT INTO paid VALUES (?, ?)", (str(half.transaction_id), AMOUNT_CENTS))
            if arg in accidents.DECLINES:
                return LocalTransactionState.ROLLBACK
            transaction.commit()
        return LocalTransactionState.COMMIT


def main() -> None:
    """Takes an order from each line of standard input, and answers with a line; ends with the input."""
    url, topic, group, database = sys.argv[1:]
    logging.basicConfig(level=logging.ERROR)  # accidents lose some ends on purpose
    book, broker = OrderBook(Path(database)), Broker(url, os.environ["SHOP_API_KEY"])
    barrier = Barrier(book.connect, group)
    service = OrderService(AccidentProducer(broker, group), book, barrier, topic)
    CheckPoller(Producer(broker, group), barrier).start()
    print("ready", flush=True)
    for line in sys.stdin:
        order_id, number = line.split()
        print(service.take(UUID(order_id), int(number)), flush=True)


if __name__ == "__main__":
    main()
