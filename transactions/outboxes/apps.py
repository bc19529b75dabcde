"""Outboxes as a Django app."""

from django.apps import AppConfig


class OutboxesConfig(AppConfig):
    """The SQL door: messages that producers insert into a table of their own."""

    name = "transactions.outboxes"
