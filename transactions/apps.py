"""Names the app: The producer's side"""

from django.apps import AppConfig


class TransactionsConfig(AppConfig):
    """half messages, ends and checks.:Producer groups, half messages, their ends and the checks that ask about them."""

    name = "transactions"
