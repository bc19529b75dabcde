"""Handlers of a Django project, for `manage.py mqbroker consume`."""

import os

from django.db import connection
from mqbroker_client import Delivery
from mqbroker_client.contrib.django import exactly_once, send


@exactly_once("payments")
def pay(delivery: Delivery) -> None:
    """An effect in the database, and a message that goes with it."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders (order_id) VALUES (%s)", [f"{delivery.body.decode()}-{os.urandom(3).hex()}"])
    send(os.environ["ONWARD"], b"paid " + delivery.body)
    if delivery.body == b"unlucky" and delivery.delivery_attempt == 1:
        raise ValueError("no money")
