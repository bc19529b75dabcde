"""FastAPI: the route that answers the broker's checks."""

from collections.abc import Sequence

from fastapi import APIRouter
from starlette.routing import Route

from mqbroker_client.core.checks import Check, CheckListener


def check_router(path: str, check: Check, secrets: Sequence[str]) -> APIRouter:
    """A router for `app.include_router(...)`, with a route at exactly `path` (a mount would redirect it).

    `check` is an `Outbox`, a `Barrier`, or a function of the program.
    """
    router = APIRouter()
    # An ASGI application, which Starlette's routes take as well as a function.
    router.routes.append(Route(path, CheckListener(check, secrets), include_in_schema=False))
    return router
