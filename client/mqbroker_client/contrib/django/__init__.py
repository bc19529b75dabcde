"""Django: messages that belong to a database transaction, and the answers to checks."""

from mqbroker_client.contrib.django.inbox import exactly_once, purge_inbox
from mqbroker_client.contrib.django.outbox import answer_checks, broker, send

__all__ = ["answer_checks", "broker", "exactly_once", "purge_inbox", "send"]
