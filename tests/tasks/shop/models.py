"""Orders, and the coupons that tasks give for them: as many as there were runs that committed."""

from django.db import models


class Order(models.Model):
    """An order that was committed."""

    way = models.TextField()

    class Meta:
        app_label = "shop"


class Coupon(models.Model):
    """What one run of a task left."""

    order = models.BigIntegerField()

    class Meta:
        app_label = "shop"
