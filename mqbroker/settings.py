"""Every setting of the broker, read once. A setting's name ends with its unit; each call explains the trade-off."""

import os
import secrets
from pathlib import Path

from console import theme
from mqbroker import logs
from mqbroker.environment import env, server_urls
from mqbroker.environment.export import (  # noqa: F401  # Django reads them here
    EXPORT_NICE,
    EXPORT_NIGHTLY_AT,
    EXPORT_NIGHTLY_MAX_SECONDS,
    EXPORT_NIGHTLY_TO,
    JDBC_JAR,
)
from mqbroker.environment.framework import (  # noqa: F401  # Django reads them here
    AUTH_PASSWORD_VALIDATORS,
    DATA_UPLOAD_MAX_MEMORY_SIZE,
    DOORS,
    INSTALLED_APPS,
    LANGUAGE_CODE,
    MIDDLEWARE,
    PASSWORD_HASHERS,
    REST_FRAMEWORK,
    ROOT_URLCONF,
    SPECTACULAR_SETTINGS,
    STATIC_URL,
    TEMPLATES,
    TIME_ZONE,
    USE_I18N,
    USE_TZ,
)
from mqbroker.environment.rocketmq import *  # noqa: F403  # Django reads them here
from mqbroker.environment.sign_on import *  # noqa: F403
from mqbroker.environment.sign_on import SIGN_ON_DOORS, SIGN_ON_MIDDLEWARE
from mqbroker.environment.watching import (  # noqa: F401  # Django reads them here
    ATTENTION_FREE_PERCENT,
    ATTENTION_LAG,
    ATTENTION_UNACKED_SECONDS,
    ATTENTION_UNASKED_SECONDS,
    CONSOLE_READING_SECONDS,
    HISTORY_DAYS,
)
from store.db import pooling
from store.db.server_url import databases

DOORS, INSTALLED_APPS = [*DOORS, *SIGN_ON_DOORS], [*INSTALLED_APPS, *SIGN_ON_DOORS]
MIDDLEWARE = [*MIDDLEWARE, *SIGN_ON_MIDDLEWARE]

BASE_DIR = Path(__file__).resolve().parent.parent

# --- transactions ---------------------------------------------------------------------------------------------------
TRANSACTION_TIMEOUT_SECONDS = env.whole(
    "TRANSACTION_TIMEOUT_SECONDS",
    6,
    "Immunity: the age of a half message at its first check (RocketMQ's transactionTimeOut). A shorter time finds "
    "lost ends sooner, and checks transactions that are merely slow.",
)
TRANSACTION_CHECK_INTERVAL_SECONDS = env.whole(
    "TRANSACTION_CHECK_INTERVAL_SECONDS", 30, "Time between two checks of a half message (transactionCheckInterval).", 1
)
TRANSACTION_CHECK_MAX = env.whole(
    "TRANSACTION_CHECK_MAX", 15, "Checks that reach a producer before its half is discarded (transactionCheckMax).", 1
)
REJECT_TRANSACTION_MESSAGE = env.switch(
    "REJECT_TRANSACTION_MESSAGE", False, "Refuse half messages of every group (rejectTransactionMessage)."
)
MAX_UNDECIDED_PER_GROUP = env.whole(
    "MAX_UNDECIDED_PER_GROUP", 1_000_000, "The most undecided transactions of one producer group; more are refused."
)

# --- delays ---------------------------------------------------------------------------------------------------------
DELAY_LEVELS = env.levels(
    "DELAY_LEVELS",
    "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    "Delay of each level, the first is level 1 (messageDelayLevel).",
)
MAX_TIMER_DELAY_SECONDS = env.whole(
    "MAX_TIMER_DELAY_SECONDS", 40 * 86400, "The longest delay of a timer (timerMaxDelaySec).", minimum=1
)

# --- storage --------------------------------------------------------------------------------------------------------
RESERVED_HOURS = env.whole(
    "RESERVED_HOURS",
    72,
    "Retention of the commit log and its queues (fileReservedTime); whole segments are dropped.",
    1,
)
SEGMENT_HOURS = env.whole(
    "SEGMENT_HOURS", 12, "Age at which a segment is closed. A lower age frees disk sooner, in more tables.", minimum=1
)
SEGMENT_MAX_MESSAGES = env.whole(
    "SEGMENT_MAX_MESSAGES", 20_000_000, "Messages at which a segment is closed before it has that age.", minimum=1000
)
RETAIN_UNTIL_EXPORTED = env.switch(
    "RETAIN_UNTIL_EXPORTED", False, "Keep segments until the nightly export contains them; if none is set, any export."
)
RETAIN_UNTIL_EXPORTED_MAX_BYTES = env.whole(
    "RETAIN_UNTIL_EXPORTED_MAX_BYTES",
    50 * 1024**3,
    "The most disk space of all segments while some wait for an export; above it the oldest are dropped unexported.",
)
MAX_MESSAGE_BYTES = env.whole(
    "MAX_MESSAGE_BYTES", 4 * 1024 * 1024, "Most bytes of a body, and of a batch's bodies (maxMessageSize).", minimum=1
)
DEFAULT_QUEUES = env.whole("DEFAULT_QUEUES", 4, "Queues of a topic that its first send makes.", minimum=1, maximum=1024)
AUTO_CREATE_TOPICS = env.switch(
    "AUTO_CREATE_TOPICS",
    False,
    "Create topics and groups at the first send or receive. This helps in development, and hides mistyped names.",
)

# --- group commit ---------------------------------------------------------------------------------------------------
GROUP_COMMIT_MAX_REQUESTS = env.whole(
    "GROUP_COMMIT_MAX_REQUESTS", 512, "The most requests of one commit. More save commits and cost latency.", 1
)
GROUP_COMMIT_MAX_WAITING = env.whole(
    "GROUP_COMMIT_MAX_WAITING", 8192, "The most requests that wait in one web process; further requests get 503.", 1
)
GROUP_COMMIT_MAX_WAIT_MILLISECONDS = env.whole(
    "GROUP_COMMIT_MAX_WAIT_MILLISECONDS", 300, "Time until work has begun, else 503 (waitTimeMillsInSendQueue).", 1
)
GROUP_COMMIT_MAX_WAITING_BYTES = env.whole(
    "GROUP_COMMIT_MAX_WAITING_BYTES", 64 * 1024 * 1024, "The most body bytes that wait in one web process; then 503.", 1
)

# --- bytes in flight ------------------------------------------------------------------------------------------------
REQUESTS_IN_FLIGHT_BYTES = env.whole(
    "REQUESTS_IN_FLIGHT_BYTES",
    32 * 1024 * 1024,
    "The most bytes of request bodies in a web process, finished or not; then 503. A batch, a transaction or a bulk "
    "has to fit into seven eighths. 1,000 callers that never finish make a process larger by this and some 85 MB.",
    1,
)
ANSWERS_IN_FLIGHT_BYTES = env.whole(
    "ANSWERS_IN_FLIGHT_BYTES",
    32 * 1024 * 1024,
    "The most bytes of message bodies that one process has read for answers or pushes and not sent yet. Near the "
    "limit reads take smaller pages, then wait in turns. One key may hold five eighths; one eighth is for pages of "
    "64 KiB. With twice MAX_RECEIVE_BYTES or more a lone reader gets whole pages.",
    1,
)
BODY_READ_SECONDS = env.whole(
    "BODY_READ_SECONDS",
    20,
    "Time in which a request's body has to arrive; afterwards 408. A longer time lets slow callers hold more memory.",
    1,
)

# --- consumers ------------------------------------------------------------------------------------------------------
DEFAULT_INVISIBLE_SECONDS = env.whole(
    "DEFAULT_INVISIBLE_SECONDS", 60, "Invisible time of a delivery if its consumer names none (invisibleTime).", 1
)
MIN_INVISIBLE_SECONDS = env.whole("MIN_INVISIBLE_SECONDS", 10, "Shortest invisible time a consumer may ask for.", 1)
MAX_INVISIBLE_SECONDS = env.whole("MAX_INVISIBLE_SECONDS", 43200, "Longest invisible time a consumer may ask for.", 1)
MAX_RECONSUME_TIMES = env.whole(
    "MAX_RECONSUME_TIMES", 16, "Retries of a message before it becomes a dead letter (retryMaxTimes)."
)
MAX_RECEIVE_MESSAGES = env.whole(
    "MAX_RECEIVE_MESSAGES", 32, "The most messages of a receive. More save requests, and make fairness coarser.", 1
)
MAX_RECEIVE_BYTES = env.whole(
    "MAX_RECEIVE_BYTES", 16 * 1024 * 1024, "The most body bytes of a queue in one answer; one message always fits.", 1
)
MAX_WAIT_SECONDS = env.whole(
    "MAX_WAIT_SECONDS", 20, "Longest long poll. Keep it below the read time-out of a proxy.", 0
)

# --- outgoing webhooks ----------------------------------------------------------------------------------------------
WEBHOOK_ALLOWED_NETWORKS = env.networks(
    "WEBHOOK_ALLOWED_NETWORKS",
    (),
    "Private networks that checks and pushes may call. Each caller that may register a URL can reach them.",
)
OUTBOX_ALLOWED_NETWORKS = env.networks(
    "OUTBOX_ALLOWED_NETWORKS",
    WEBHOOK_ALLOWED_NETWORKS,
    "Private networks in which databases with outboxes may be; by default the networks that webhooks may call.",
)
SECRETS_KEYS = env.secret_keys(
    "SECRETS_KEYS",
    "Keys, separated by commas, that seal the secrets of endpoints and subscriptions in the database: the first key "
    "seals, all keys open. Without a key the secrets are stored unsealed, and a reader of the database can sign.",
)

# --- the web, the database and the task broker ------------------------------------------------------------------------
DEBUG = False
SECRET_KEY = env.text("SECRET_KEY", "", "Key that signs the console's sessions; all web processes need the same key.")
if not SECRET_KEY:
    # A key made by each process is enough for tests and one-off commands; sessions end with the process.
    SECRET_KEY = secrets.token_urlsafe(50)
ALLOWED_HOSTS = list(env.words("ALLOWED_HOSTS", ("*",), "Host names at which the console answers."))
CSRF_TRUSTED_ORIGINS = list(
    env.words("CSRF_TRUSTED_ORIGINS", (), "Origins behind a TLS proxy that may post to the console.")
)
SECURE_COOKIES = env.switch("SECURE_COOKIES", False, "Send the console's cookies over TLS only. Turn on behind TLS.")
TRUSTED_PROXIES = env.networks(
    "TRUSTED_PROXIES",
    (),
    "Networks of proxies whose X-Forwarded-For gives the address of a sign-in to the console; their connections are "
    "not counted by address. Without them all callers behind a proxy share the limits of its address.",
)
CONNECTIONS_PER_ADDRESS = env.whole(
    "CONNECTIONS_PER_ADDRESS", 49_152, "The most connections of a web process from one address.", 1
)
API_KEY = env.text(
    "API_KEY",
    "",
    "An API key to which `manage.py prepare` and `./mq up` give every scope; without it they make the first key. "
    "Unlike an argument, the variable is not shown in the list of processes.",
)
LOG = env.choice(
    "LOG", "text", "Format of every process's log: text, to read; or json, an object per line, to collect.", logs.FORMS
)
DATABASE_CONNECTIONS = env.whole(
    "DATABASE_CONNECTIONS", 4, "Connections of each web process for reads of the data plane; writes have 7 more.", 1
)

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_HTTPONLY = SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
# Redirects to HTTPS and HSTS are tasks of the proxy that ends TLS; the broker itself must not redirect producers.
SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W008"]

DATABASE_URL = os.environ.get("DATABASE_URL", "postgresql://mqbroker@127.0.0.1:5432/mqbroker")
REDIS_URL = server_urls.task_broker(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"))
DATABASE_POOLER = env.choice("DATABASE_POOLER", "none", "How a PgBouncer in DATABASE_URL pools.", pooling.WAYS)
DATABASES, DIRECT_DATABASE = databases(DATABASE_URL, DATABASE_POOLER, os.environ.get("DIRECT_DATABASE_URL", ""))
DATABASE_ROUTERS = ["store.db.databases.Router"]

# `./mq up` sets this for each process: the data folder of its private servers.
DATA_DIR = os.environ.get("MQBROKER_DATA_DIR", "")
TASK_QUEUE = env.text(
    "TASK_QUEUE",
    server_urls.task_queue(DATABASES["default"]),
    "The list in Redis with this broker's ticks, by default named after DATABASE_URL. Set it if beat and workers "
    "name one database differently, or if two brokers with one Redis name two databases alike.",
)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

UNFOLD = theme.UNFOLD
LOGIN_URL = "/console/login/"
LOGIN_REDIRECT_URL = "/console/"

LOGGING = logs.configure(LOG)

# The settings for the console, whose package must not import this one.
DECLARED_SETTINGS = env.declared
