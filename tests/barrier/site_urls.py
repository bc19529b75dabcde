"""The URLs of the tests' Django project."""

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from mqbroker_client.contrib.django import send


def order(request: HttpRequest, topic: str, order_id: str) -> HttpResponse:
    """Under ATOMIC_REQUESTS its transaction is the request's."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders VALUES (%s, NULL)", [order_id])
    send(topic, order_id)
    if "declined" in request.GET:
        raise RuntimeError("the card is declined")
    return HttpResponse("paid")


urlpatterns = [
    path("orders/<topic>/<order_id>", order),
    path("mqbroker/", include("mqbroker_client.contrib.django.urls")),
]
