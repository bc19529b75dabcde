"""Reads REDIS_URL into the settings of Celery, and names what brokers that share a Redis have there."""

from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


def task_broker(url: str) -> str:
    """The URL of a Redis, as given.

    Raises ImproperlyConfigured when it names none.
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
    """The list of ticks in Redis, named by the database: brokers that share a Redis have a list each."""
    return f"mqbroker.{database['NAME']}@{database['HOST'] or 'localhost'}:{database['PORT'] or 5432}"
