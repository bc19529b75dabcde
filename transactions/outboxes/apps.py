"""Outboxes as a Django app."""

from django.apps import AppConfig


class OutboxesConfig(AppConfig):
    """Outboxes: messages that producers insert into a table in their own database."""

    name = "transactions.outboxes"
