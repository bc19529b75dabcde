"""The application of a web process: static files, and the data plane's handler in front of Django's."""

import contextlib
from collections.abc import AsyncIterator, Callable

from mqbroker.api.handler import Handler
from mqbroker.api.routes import routes
from mqbroker.process import lifespan
from mqbroker.web import static_files
from mqbroker.web.django_handler import DjangoHandler
from mqbroker.web.static_files import StaticFiles
from mqbroker.wire.admission import Serve


def load() -> None:
    """Loads the part of `handler` that needs no runtime, so that forks of this process need not load it."""
    static_files.paths()
    DjangoHandler()


def handler() -> Handler:
    """The handler of this process; its runtime must exist."""
    return Handler(routes, files=StaticFiles(), otherwise=DjangoHandler())


@contextlib.asynccontextmanager
async def serving(begin: Callable[[], object], *, is_known: bool) -> AsyncIterator[Serve]:
    """Runs the lifespan of a process within the block: calls `begin`, yields the function that serves a request."""
    async with lifespan.running(is_known=is_known):
        found = handler()
        begin()
        yield found
