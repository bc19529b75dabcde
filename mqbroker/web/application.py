"""What a web process serves: static files, and the data plane's handler in front of Django's."""

from mqbroker.api.handler import Handler
from mqbroker.api.routes import routes
from mqbroker.web import static_files
from mqbroker.web.django_handler import DjangoHandler
from mqbroker.web.static_files import StaticFiles


def load() -> None:
    """Does what `handler` does without a runtime, so that a fork of this process has it done."""
    static_files.paths()
    DjangoHandler()


def handler() -> Handler:
    """The handler of this process, whose runtime is made."""
    return Handler(routes, files=StaticFiles(), otherwise=DjangoHandler())
