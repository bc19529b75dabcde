"""The ASGI application: the data plane's handler in front of Django's."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")

from django.core.asgi import get_asgi_application

stock = get_asgi_application()

from mqbroker.api.asgi_handler import AsgiHandler  # noqa: E402  # Django's apps must be ready before its models are imported
from mqbroker.api.bodies import Receive, Scope, Send  # noqa: E402
from mqbroker.api.routes import routes  # noqa: E402
from mqbroker.web import lifespan  # noqa: E402

handler = AsgiHandler(routes, otherwise=stock)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serves one HTTP request, or the server's start and stop."""
    if scope["type"] == "http":
        await handler(scope, receive, send)
    elif scope["type"] == "lifespan":
        await lifespan.run(receive, send)
