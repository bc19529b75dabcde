"""Actions as a Django app."""

from django.apps import AppConfig


class ActionsConfig(AppConfig):
    """The actions of operators, and what is left of them to do."""

    name = "console.actions"
