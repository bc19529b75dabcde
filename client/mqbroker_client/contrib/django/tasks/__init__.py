"""A backend of Django's task framework: a task is a message of the transaction in which it is enqueued."""

from mqbroker_client.contrib.django.tasks.backend import Backend

__all__ = ["Backend"]
