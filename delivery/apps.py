"""Names the app: The consumer's side"""

from django.apps import AppConfig


class DeliveryConfig(AppConfig):
    """receive, ack, retry.:Consumer groups, receipts and subscriptions."""

    name = "delivery"
