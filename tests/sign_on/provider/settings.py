"""An identity provider: a Django project with django-oauth-toolkit, on SQLite in the folder of the environment."""

import os
from pathlib import Path

FOLDER = Path(os.environ["PROVIDER_FOLDER"])
SECRET_KEY = "of the tests' provider"
ALLOWED_HOSTS = ["127.0.0.1"]
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "provider.sqlite", "OPTIONS": {"timeout": 20}}
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
ROOT_URLCONF = "tests.sign_on.provider.urls"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "oauth2_provider",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "tests.sign_on.provider.tokens.answering",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STATIC_URL = "/static/"
LOGIN_URL = "/admin/login/"
# Cookies know no port, and the console is at the same address.
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "provider_session", "provider_csrf"
OAUTH2_PROVIDER = {
    "OIDC_ENABLED": True,
    "OIDC_RSA_PRIVATE_KEY": (FOLDER / "provider.pem").read_text(),
    "OIDC_ISS_ENDPOINT": os.environ["PROVIDER_ISSUER"],
    "OAUTH2_VALIDATOR_CLASS": "tests.sign_on.provider.tokens.Tokens",
    "SCOPES": {"openid": "identity", "email": "address", "profile": "name"},
    "PKCE_REQUIRED": True,
}
