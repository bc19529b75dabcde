"""Places orders in four threads until the program is killed, a tenth of them rolled back.

The way `behind`: a task is enqueued by `on_commit`; otherwise within the transaction.
"""

import random
import threading
import time
from contextlib import suppress
from functools import partial

from django.db import Error, close_old_connections, transaction
from mqbroker_client.core.errors import BrokerError

from tests.task_backend.project.models import Order
from tests.task_backend.project.tasks import note

THREADS = 4


class TakenBack(Exception):
    """Rolls back."""


def order(way: str) -> None:
    """One order and its task."""
    with transaction.atomic():
        made = Order._default_manager.create()
        if way == "behind":
            transaction.on_commit(partial(note.enqueue, made.pk))
        else:
            note.enqueue(made.pk)
        if random.random() < 0.1:
            raise TakenBack


def orders(way: str) -> None:
    """Orders for ever; what is away is tried again."""
    while True:
        with suppress(TakenBack, BrokerError, Error, OSError):
            order(way)
        close_old_connections()
        time.sleep(0.05)  # the load, of some 80 orders a second at most


def main(way: str) -> None:
    for _ in range(THREADS - 1):
        threading.Thread(target=orders, args=(way,), daemon=True).start()
    orders(way)
