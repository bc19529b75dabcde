"""The task broker's side: the Celery app with its beat table, and the processes that run and send tasks."""
