"""The producer's side as a Django app."""

from django.apps import AppConfig


class TransactionsConfig(AppConfig):
    """Producer groups and endpoints, half messages, their ends and checks."""

    name = "transactions"
