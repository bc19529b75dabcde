"""The parts that connect the apps: settings, HTTP API, schema, errors as HTTP, API keys, Celery and the web process."""
