"""The shop's settings: its database, broker and Celery's broker are those of the environment."""

import os
from urllib.parse import urlsplit

place = urlsplit(os.environ["SHOP_DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": place.path[1:],
        "USER": place.username,
        "PASSWORD": place.password,
        "HOST": place.hostname,
        "PORT": place.port,
    }
}
SECRET_KEY = "of the tests"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["mqbroker_client.contrib.django", "tests.tasks.shop"]
MQBROKER = {
    "URL": os.environ["MQBROKER_URL"],
    "API_KEY": os.environ["MQBROKER_API_KEY"],
    "PRODUCER_GROUP": "task-shop",
}
CELERY_BROKER_URL = os.environ["CELERY_BROKER_URL"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 4
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A worker that loses its broker goes on for ever.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
