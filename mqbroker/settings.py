"""Every setting of the broker, read once: the unit ends the name, the meaning and its trade-off stand beside it."""

import os
import secrets
from pathlib import Path

from console import theme
from mqbroker import env, logs
from mqbroker.server_urls import database, task_broker, ticks_of

BASE_DIR = Path(__file__).resolve().parent.parent

# --- transactions ---------------------------------------------------------------------------------------------------
TRANSACTION_TIMEOUT_SECONDS = env.whole(
    "TRANSACTION_TIMEOUT_SECONDS",
    6,
    "Immunity: the age at which a half message is first asked about (RocketMQ's transactionTimeOut). "
    "Shorter finds lost ends sooner, and asks about transactions that are merely slow.",
)
TRANSACTION_CHECK_INTERVAL_SECONDS = env.whole(
    "TRANSACTION_CHECK_INTERVAL_SECONDS",
    30,
    "Time between two checks of one half message (transactionCheckInterval).",
    minimum=1,
)
TRANSACTION_CHECK_MAX = env.whole(
    "TRANSACTION_CHECK_MAX",
    15,
    "Checks that were really asked before a half message is discarded (transactionCheckMax).",
    minimum=1,
)
REJECT_TRANSACTION_MESSAGE = env.switch(
    "REJECT_TRANSACTION_MESSAGE", False, "Refuse half messages of every group (rejectTransactionMessage)."
)
MAX_UNDECIDED_PER_GROUP = env.whole(
    "MAX_UNDECIDED_PER_GROUP", 1_000_000, "Half messages of one producer group without a decision; more are refused."
)

# --- delays ---------------------------------------------------------------------------------------------------------
DELAY_LEVELS = env.levels(
    "DELAY_LEVELS",
    "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    "Delay of each level, the first is level 1 (messageDelayLevel).",
)
MAX_TIMER_DELAY_SECONDS = env.whole(
    "MAX_TIMER_DELAY_SECONDS", 40 * 86400, "The longest arbitrary timer (timerMaxDelaySec).", minimum=1
)

# --- storage --------------------------------------------------------------------------------------------------------
RESERVED_HOURS = env.whole(
    "RESERVED_HOURS", 72, "Retention of the commit log and its queues (fileReservedTime). Whole segments go.", minimum=1
)
SEGMENT_HOURS = env.whole(
    "SEGMENT_HOURS", 12, "Age at which a segment is closed. Shorter frees disk sooner and makes more tables.", minimum=1
)
SEGMENT_MAX_MESSAGES = env.whole(
    "SEGMENT_MAX_MESSAGES", 20_000_000, "Messages at which a segment is closed before its age.", minimum=1000
)
MAX_MESSAGE_BYTES = env.whole(
    "MAX_MESSAGE_BYTES", 4 * 1024 * 1024, "Body of a message, and bodies of a whole batch (maxMessageSize).", minimum=1
)
DEFAULT_QUEUES = env.whole("DEFAULT_QUEUES", 4, "Queues of a topic made at its first send.", minimum=1, maximum=1024)
AUTO_CREATE_TOPICS = env.switch(
    "AUTO_CREATE_TOPICS",
    False,
    "Make topics and groups at the first send or receive. Handy in development; hides typing errors.",
)

# --- group commit ---------------------------------------------------------------------------------------------------
GROUP_COMMIT_MAX_REQUESTS = env.whole(
    "GROUP_COMMIT_MAX_REQUESTS",
    512,
    "Requests written as one transaction at most. More saves commits, costs latency.",
    1,
)
GROUP_COMMIT_MAX_WAITING = env.whole(
    "GROUP_COMMIT_MAX_WAITING", 8192, "Requests that may wait in one web process; the next is answered 503.", 1
)
GROUP_COMMIT_MAX_WAITING_BYTES = env.whole(
    "GROUP_COMMIT_MAX_WAITING_BYTES", 64 * 1024 * 1024, "Body bytes that may wait in one web process; then 503.", 1
)

# --- bytes in flight ------------------------------------------------------------------------------------------------
REQUESTS_IN_FLIGHT_BYTES = env.whole(
    "REQUESTS_IN_FLIGHT_BYTES",
    32 * 1024 * 1024,
    "Request bodies that one web process holds, unfinished ones too; then 503. Bulks and batches have to fit. 1,000 "
    "callers that never finish make a process larger by this and some 60 MB.",
    1,
)
ANSWERS_IN_FLIGHT_BYTES = env.whole(
    "ANSWERS_IN_FLIGHT_BYTES",
    32 * 1024 * 1024,
    "Message bodies that one web process has read for answers and not sent yet; reads take smaller pages as it fills, "
    "then wait. Twice MAX_RECEIVE_BYTES or more lets a lone reader have whole pages.",
    1,
)
BODY_READ_SECONDS = env.whole(
    "BODY_READ_SECONDS", 20, "Time for a request's body to come whole; then 408. Longer holds more for slow callers.", 1
)

# --- consumers ------------------------------------------------------------------------------------------------------
DEFAULT_INVISIBLE_SECONDS = env.whole(
    "DEFAULT_INVISIBLE_SECONDS", 60, "Time a consumer has to ack a delivery when it names none (invisibleTime).", 1
)
MIN_INVISIBLE_SECONDS = env.whole("MIN_INVISIBLE_SECONDS", 10, "Shortest invisible time a consumer may ask for.", 1)
MAX_INVISIBLE_SECONDS = env.whole("MAX_INVISIBLE_SECONDS", 43200, "Longest invisible time a consumer may ask for.", 1)
MAX_RECONSUME_TIMES = env.whole(
    "MAX_RECONSUME_TIMES", 16, "Retries of a message before it goes to the dead letters (retryMaxTimes)."
)
MAX_RECEIVE_MESSAGES = env.whole(
    "MAX_RECEIVE_MESSAGES", 32, "Messages one receive may ask for. More saves requests, and makes fairness coarser.", 1
)
MAX_RECEIVE_BYTES = env.whole(
    "MAX_RECEIVE_BYTES", 16 * 1024 * 1024, "Bodies of a queue given out at once; the first message always is.", 1
)
MAX_WAIT_SECONDS = env.whole("MAX_WAIT_SECONDS", 20, "Longest long poll. Keep it below your proxy's read time-out.", 0)

# --- outgoing webhooks ----------------------------------------------------------------------------------------------
WEBHOOK_ALLOWED_NETWORKS = env.networks(
    "WEBHOOK_ALLOWED_NETWORKS",
    (),
    "Private networks that check-back and push may call. Each one listed is reachable by whoever may register a URL.",
)

# --- the export -----------------------------------------------------------------------------------------------------
JDBC_JAR = env.text(
    "JDBC_JAR", "", "PostgreSQL's JDBC driver for `./mq export`. Without it: the system's, else Spark fetches one."
)

# --- the web, the database and the task broker ------------------------------------------------------------------------
DEBUG = False
SECRET_KEY = env.text("SECRET_KEY", "", "Signs the console's sessions; all web processes need the same one.")
if not SECRET_KEY:
    # Each process then makes its own: enough for tests and one-off commands; sessions end with the process.
    SECRET_KEY = secrets.token_urlsafe(50)
ALLOWED_HOSTS = list(env.words("ALLOWED_HOSTS", ("*",), "Host names the console answers to."))
CSRF_TRUSTED_ORIGINS = list(
    env.words("CSRF_TRUSTED_ORIGINS", (), "Origins behind a TLS proxy that may post to the console.")
)
SECURE_COOKIES = env.switch("SECURE_COOKIES", False, "Send the console's cookies over TLS only. Turn on behind TLS.")
TRUSTED_PROXIES = env.networks(
    "TRUSTED_PROXIES",
    (),
    "Proxies whose X-Forwarded-For names the address that signs in to the console. Without them, all who come through "
    "a proxy share the attempts of its address.",
)
API_KEY = env.text(
    "API_KEY",
    "",
    "An API key that `manage.py prepare` and `./mq up` let in with every scope; without it the first one is made. "
    "Unlike an argument it is in no list of processes.",
)
LOG = env.choice(
    "LOG", "text", "The log of every process: text to read, or json, an object per line, to collect.", logs.FORMS
)
DATABASE_CONNECTIONS = env.whole(
    "DATABASE_CONNECTIONS", 4, "Connections of each web process for reads of the data plane; writes have 3 more.", 1
)

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_HTTPONLY = True
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
# Redirects to TLS and HSTS are the proxy's that ends TLS in front of us: producers must not be redirected.
SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W008"]

DATABASE_URL = os.environ.get("DATABASE_URL", "postgresql://mqbroker@127.0.0.1:5432/mqbroker")
REDIS_URL = task_broker(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"))
DATABASES = {"default": database(DATABASE_URL)}

TASK_QUEUE = env.text(
    "TASK_QUEUE",
    ticks_of(DATABASES["default"]),
    "The list in Redis with this broker's ticks. It follows from DATABASE_URL: set it where beat and workers name the "
    "same database differently, or two brokers with one Redis name different databases the same.",
)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "unfold",
    "console.apps.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.postgres",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "store",
    "scheduling",
    "transactions",
    "delivery",
    "analytics",
    "console",
    "mqbroker",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "mqbroker.urls"
ASGI_APPLICATION = "mqbroker.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
PASSWORD_HASHERS = ["console.passwords.SeparateHasher"]
AUTH_PASSWORD_VALIDATORS = [{"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"}]

LANGUAGE_CODE = "en-us"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
# Static files are served from the installed packages themselves, so that no collect step can be forgotten.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

# `mqbroker.api.limits` says how large a request may be: what comes to Django's forms has been read within that.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["mqbroker.access.ApiKeyAuthentication", "mqbroker.access.ConsoleSession"],
    "DEFAULT_PERMISSION_CLASSES": ["mqbroker.access.MayManage"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "mqbroker.errors.answer_drf",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "mqbroker",
    "DESCRIPTION": "Transactional messages for teams that already run PostgreSQL.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "mqbroker.schema.add_data_plane",
    ],
}
UNFOLD = theme.UNFOLD
LOGIN_URL = "/console/login/"
LOGIN_REDIRECT_URL = "/console/"

LOGGING = logs.configure(LOG)
