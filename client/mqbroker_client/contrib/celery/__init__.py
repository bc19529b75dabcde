"""Celery: task calls that belong to a database transaction, and the relay that publishes these calls."""

from mqbroker_client.contrib.celery.relay import Relay
from mqbroker_client.contrib.celery.tasks import TransactionalTask, transactional_task
from mqbroker_client.contrib.celery.transactions import in_session

__all__ = ["Relay", "TransactionalTask", "in_session", "transactional_task"]
