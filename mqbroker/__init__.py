"""The wiring: settings, URLs, ASGI, Celery, errors as HTTP, metrics and the command line."""
