"""The store as a Django app."""

from django.apps import AppConfig


class StoreConfig(AppConfig):
    """Topics, the commit log, the consume queues, segments and group commit."""

    name = "store"
