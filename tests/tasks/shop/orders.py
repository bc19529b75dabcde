"""Orders in four threads, without an end, a tenth of them rolled back."""

import random
import threading
import time
from contextlib import suppress
from functools import partial

from django.db import DatabaseError, close_old_connections, transaction
from kombu.exceptions import KombuError
from mqbroker_client.core.errors import BrokerError

from tests.tasks.shop.models import Order
from tests.tasks.shop.tasks import give_coupon, give_coupon_behind

THREADS = 4


class TakenBack(Exception):
    """Rolls back."""


def order(way: str) -> None:
    """One order, and the call of its task."""
    with transaction.atomic():
        made = Order(way=way)
        made.save()
        if way == "behind":
            transaction.on_commit(partial(give_coupon_behind.delay, made.pk))
        else:
            give_coupon.delay(made.pk)
        if random.random() < 0.1:
            raise TakenBack


def orders(way: str) -> None:
    """Orders for ever; what is away is tried again."""
    while True:
        with suppress(TakenBack, BrokerError, DatabaseError, KombuError, OSError):
            order(way)
        close_old_connections()
        time.sleep(0.05)  # the load, of some 80 orders a second at most


def place(way: str) -> None:
    """Places orders for ever; with the way `behind` their tasks are called by `on_commit`."""
    threads = [threading.Thread(target=orders, args=(way,), daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
