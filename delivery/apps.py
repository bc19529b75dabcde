"""The Django app of the consumer's side."""

from django.apps import AppConfig


class DeliveryConfig(AppConfig):
    """Consumer groups, receipts, redrives and subscriptions: the tables of delivery."""

    name = "delivery"
