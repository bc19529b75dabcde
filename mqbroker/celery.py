"""The task broker and the beat table: what runs by itself, and how often."""

from celery import Celery

app = Celery("mqbroker")
