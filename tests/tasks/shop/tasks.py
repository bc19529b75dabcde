"""The task, called in the transaction; and beside it the same as it is called behind the commit."""

from celery import shared_task
from mqbroker_client.contrib.celery import transactional_task
from mqbroker_client.contrib.celery.inbox import exactly_once

from tests.tasks.shop.models import Coupon


@transactional_task
@exactly_once
def give_coupon(order: int) -> None:
    Coupon(order=order).save()


@shared_task
def give_coupon_behind(order: int) -> None:
    Coupon(order=order).save()
