"""Actions as a Django app."""

from django.apps import AppConfig


class ActionsConfig(AppConfig):
    """The actions of operators, and their progress."""

    name = "console.actions"
