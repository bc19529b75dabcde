"""Celery: the app with the table of periodic tasks, and the processes that send tasks (beat) and run them (worker)."""
