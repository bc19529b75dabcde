"""Settings as the message path reads them: once per process. Each look at Django's own object takes 0.4 us."""

from functools import cache
from typing import Any

from django.conf import settings


@cache
def setting(name: str) -> Any:
    """The value of a setting, as it was at its first use; of the type that `mqbroker.settings` gave it."""
    return getattr(settings, name)
