"""Settings of Django and its frameworks. An operator has nothing to set here."""

from importlib.util import find_spec

APART = ("analytics", "transactions.outboxes", "scheduling.cron")
# The apps that an installation can do without (`store.process.doors`), as far as their folders are there. A folder that
# holds compiled modules only has no origin.
DOORS = [name for name in APART if (found := find_spec(name)) and found.origin]
INSTALLED_APPS = [
    # The console is listed before Unfold, so that its header template replaces Unfold's.
    "console",
    # Unfold without its own admin site, which would replace the console.
    "unfold.apps.BasicAppConfig",
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
    "access",
    "scheduling",
    "transactions",
    "delivery",
    *DOORS,
    "console.actions",
    "console.monitoring",
    "console.cells",
    "mqbroker",
]
MIDDLEWARE = [
    "mqbroker.web.content_policy.ContentPolicy",
    "django.middleware.security.SecurityMiddleware",
    # This middleware comes after SecurityMiddleware, whose redirect to HTTPS must keep the host.
    "mqbroker.web.own_redirects.OwnRedirects",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "mqbroker.urls"
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
PASSWORD_HASHERS = ["console.users.passwords.SeparateHasher"]
AUTH_PASSWORD_VALIDATORS = [{"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"}]

LANGUAGE_CODE = "en-us"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
# `mqbroker.web.static_files` serves static files directly from installed packages, so no collectstatic step is needed.

# `mqbroker.api.limits` limits the size of every request before Django's forms read it.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["mqbroker.rights.ApiKeyAuthentication", "mqbroker.rights.ConsoleSession"],
    "DEFAULT_PERMISSION_CLASSES": ["mqbroker.rights.MayManage"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "mqbroker.errors.answer_drf",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "mqbroker",
    "DESCRIPTION": "Transactional messages for teams that already run PostgreSQL. The header `X-Namespace` names the "
    "namespace of a caller whose key is bound to none: names are bare then, in the request and its answer. "
    "[The console](/console/) shows what is there.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "filter": True, "displayRequestDuration": True},
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "mqbroker.schema.add_data_plane",
        "mqbroker.schema.add_examples",
    ],
}
