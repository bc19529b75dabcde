"""A bank's processes: `python -m tests.chaos.bank pay|book DATABASE BROKER TOPIC GROUP [COUNT]`.

`pay` debits accounts and sends a message with each transfer until so many are paid; `book` credits what it receives.
"""

import os
import random
import sys
from typing import Any

import psycopg
import sqlalchemy as sa
from mqbroker_client import Broker, CheckPoller, Consumer, Delivery, Producer
from mqbroker_client.barrier.inbox import Inbox
from mqbroker_client.contrib.sqlalchemy import Outbox
from mqbroker_client.core.ids import uuid7
from sqlalchemy.orm import Session, sessionmaker

ACCOUNTS = 3
BALANCE = 100_000
TABLES = (
    "CREATE TABLE accounts (account int PRIMARY KEY, balance int NOT NULL)",
    f"INSERT INTO accounts SELECT number, {BALANCE} FROM generate_series(1, {ACCOUNTS}) number",
    "CREATE TABLE transfers (transfer_id varchar PRIMARY KEY, amount int NOT NULL, times int NOT NULL DEFAULT 1)",
)
DEBIT = sa.text("UPDATE accounts SET balance = balance - :amount WHERE account = :account")
NOTE = sa.text("INSERT INTO transfers VALUES (:id, :amount)")
COUNT = sa.text("SELECT count(*) FROM transfers")
CREDIT = "UPDATE accounts SET balance = balance + %s WHERE account = %s"
# Counted, not ignored: a second effect must show.
BOOK = "INSERT INTO transfers VALUES (%s, %s) ON CONFLICT (transfer_id) DO UPDATE SET times = transfers.times + 1"


def pay(database: str, broker: Broker, topic: str, group: str, count: int) -> None:
    engine = sa.create_engine(database.replace("postgresql", "postgresql+psycopg", 1))
    outbox, sessions = Outbox(Producer(broker, group), engine), sessionmaker(engine)
    outbox.listen(sessions)
    CheckPoller(outbox.producer, outbox).start()
    while True:
        with sessions.begin() as session:
            if (session.scalar(COUNT) or 0) >= count:
                return
            _transfer(outbox, session, topic)


def _transfer(outbox: Outbox, session: Session, topic: str) -> None:
    transfer_id, amount = str(uuid7()), random.randint(1, 9)
    session.execute(DEBIT, {"amount": amount, "account": random.randint(1, ACCOUNTS)})
    session.execute(NOTE, {"id": transfer_id, "amount": amount})
    to = random.randint(1, ACCOUNTS)
    outbox.send(session, topic, {"transfer_id": transfer_id, "amount": amount, "account": to})


def book(database: str, broker: Broker, topic: str, group: str) -> None:
    inbox = Inbox(group, lambda: psycopg.connect(database))

    def credit(delivery: Delivery, connection: Any) -> None:
        transfer = delivery.json()
        connection.execute(CREDIT, (transfer["amount"], transfer["account"]))
        connection.execute(BOOK, (transfer["transfer_id"], transfer["amount"]))

    run = inbox.exactly_once(credit)
    Consumer(broker, group).run(topic, run, concurrency=4, ordered=False, invisible_seconds=5, wait_seconds=2)


if __name__ == "__main__":
    work, database, url, topic, group, *count = sys.argv[1:]
    broker = Broker(url, os.environ["API_KEY"])
    if work == "pay":
        pay(database, broker, topic, group, int(count[0]))
    else:
        book(database, broker, topic, group)
