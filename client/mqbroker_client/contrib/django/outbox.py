"""`send` in a transaction: the messages are stored right before its COMMIT, and become visible right after it."""

from functools import partial
from typing import Unpack

from django.core.serializers.json import DjangoJSONEncoder
from django.db import Error, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from mqbroker_client.barrier import commits
from mqbroker_client.barrier.bodies import encoded
from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.contrib.django.apps import config
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.messages import Message, MessageFields


class Staged:
    """A message of an open transaction, stored among the transaction's `on_commit` functions.

    So a rollback to a savepoint drops the savepoint's messages, as it drops its `on_commit` functions.
    """

    def __init__(self, message: Message) -> None:
        self.message = message
        self.is_prepared = False

    def __call__(self) -> None:
        # Only `TestCase.captureOnCommitCallbacks(execute=True)` calls this, because there is no COMMIT in such a test.
        if not self.is_prepared:
            config().producer.send_message(self.message)

    def __repr__(self) -> str:
        return f"Staged({self.message!r})"


def send(topic: str, body: object, *, using: str | None = None, **fields: Unpack[MessageFields]) -> Message:
    """Sends a message with the open transaction: both are committed, or neither is.

    `body` is bytes, a text, or a value that DjangoJSONEncoder can encode. `using` is the alias of the transaction's
    database: MQBROKER's DATABASE, or one of MORE_DATABASES. Raises ValueError for another alias, and OutsideTransaction
    outside of `transaction.atomic()`. A broker error at the COMMIT rolls back, and the COMMIT raises the error.
    """
    alias = using or config().options.database
    if alias not in config().options.databases:
        raise ValueError(f"the database {alias!r} sends no messages: name it in MORE_DATABASES of MQBROKER")
    connection = connections[alias]
    if not connection.in_atomic_block:
        raise OutsideTransaction(
            f"no transaction of the database {alias!r} is open: call send within transaction.atomic(using={alias!r}), "
            "or use Producer.send for a message that belongs to no transaction"
        )
    message = Message(topic, encoded(body, DjangoJSONEncoder), **fields)
    transaction.on_commit(Staged(message), using=alias)
    # The method is replaced on the connection itself, because `Atomic` does not call the proxy `django.db.connection`.
    connection.__dict__.setdefault("commit", partial(_commit, connection))
    return message


def broker() -> Broker:
    """The broker that MQBROKER names. With the URL `memory:`, a new `MemoryBroker` after each `override_settings`."""
    return config().producer.broker


def answer_checks(*, seconds: float = 30.0) -> int:
    """Answers due checks and sends kept messages, for Celery beat or cron; returns the number of answers.

    Raises BrokerError when the broker is away.
    """
    works = config().works
    return sum(work.once(seconds=seconds / len(works)) for work in works)


def _commit(connection: BaseDatabaseWrapper) -> None:
    """Replaces `connection.commit` for one commit, to store the messages before it and to send the ends after it."""
    del connection.__dict__["commit"]
    staged = [function for _, function, *_ in connection.run_on_commit if isinstance(function, Staged)]
    # With autocommit off, the list also contains messages of earlier commits until autocommit is on again.
    staged = [one for one in staged if not one.is_prepared]
    if not staged:
        connection.commit()
        return
    steps = config().all_steps[connection.alias]
    try:
        prepared = steps.before_commit(connection, [one.message for one in staged])
    except BaseException:
        # `Atomic` rolls back only for a DatabaseError; otherwise the next statement would run in this transaction.
        _roll_back(connection)
        raise
    for one in staged:
        one.is_prepared = True
    ending = commits.Ending(steps, prepared)
    commits.commit([ending], by=connection.commit, or_roll_back=partial(_roll_back, connection))


def _roll_back(connection: BaseDatabaseWrapper) -> None:
    try:
        connection.rollback()
    except Error:
        connection.close()
