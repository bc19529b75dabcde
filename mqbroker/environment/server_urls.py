"""Reads REDIS_URL into Celery's settings, and chooses names in Redis that do not clash between brokers."""

from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


def task_broker(url: str) -> str:
    """Returns the URL of a Redis unchanged.

    Raises ImproperlyConfigured when the text is not such a URL.
    """
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("redis", "rediss") and parts.hostname and parts.port != 0
    except ValueError:  # the port is no number, as in a URL with two hosts
        named = False
    if not named:
        raise ImproperlyConfigured("REDIS_URL does not name a Redis: give redis://:password@host:port/number.")
    return url


def task_queue(database: dict[str, object]) -> str:
    """The name of the list of tasks in Redis, made from the database's name: brokers that share a Redis use different
    lists.
    """
    return f"mqbroker.{database['NAME']}@{database['HOST'] or 'localhost'}:{database['PORT'] or 5432}"
