"""A Django shop on Celery: each order of a transaction calls a task, which gives a coupon."""

from tests.tasks.shop.celery import app as celery_app

__all__ = ["celery_app"]
