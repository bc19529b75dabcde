"""The ASGI application: the data plane's lean handler in front of Django's stock one."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")

from django.core.asgi import get_asgi_application

stock = get_asgi_application()

from mqbroker.api.asgi_handler import LeanHandler  # noqa: E402
from mqbroker.api.bodies import Receive, Send  # noqa: E402
from mqbroker.api.routes import routes  # noqa: E402
from mqbroker.web import lifespan  # noqa: E402  # Django's apps must be ready before its models are imported

lean = LeanHandler(routes, otherwise=stock)


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Serves one HTTP request, or the server's start and stop."""
    if scope["type"] == "http":
        await lean(scope, receive, send)
    elif scope["type"] == "lifespan":
        await lifespan.run(receive, send)
