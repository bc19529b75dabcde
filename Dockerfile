# One image for every process of the broker: docker-compose.yml names their commands.
# The Python of the tests: requirements.lock may name other packages for another version.
FROM python:3.11-slim-bookworm

# Wheels only, each by its hash: nothing is compiled here. The lock is the runtime with RocketMQ's protocol, without private
# servers. Removed again of the package with the page of /docs: Redoc, which no page uses, and debuggers' files (7.5 MB).
COPY requirements-rocketmq.lock /tmp/requirements.lock
RUN pip install --no-cache-dir --disable-pip-version-check --only-binary :all: --require-hashes -r /tmp/requirements.lock \
    && rm -r "$(python -c 'import drf_spectacular_sidecar as found; print(*found.__path__)')"/static/*/redoc \
    && find "$(python -c 'import drf_spectacular_sidecar as found; print(*found.__path__)')" -name '*.map' -delete \
    && rm /tmp/requirements.lock

# /data is for the example only: the broker keeps nothing outside of PostgreSQL.
RUN useradd --system --uid 10001 --home-dir /nonexistent mqbroker && install --directory --owner mqbroker /data

WORKDIR /app
COPY manage.py ./
COPY mqbroker mqbroker
COPY console console
COPY transactions transactions
COPY delivery delivery
COPY analytics analytics
COPY scheduling scheduling
COPY webhooks webhooks
COPY access access
COPY store store
COPY client client
COPY examples examples

ENV DJANGO_SETTINGS_MODULE=mqbroker.settings \
    PYTHONPATH=/app:/app/client \
    PYTHONUNBUFFERED=1
RUN python -m compileall -q /app

USER mqbroker
EXPOSE 8000
CMD ["python", "-m", "mqbroker.web", "--host", "0.0.0.0", "--port", "8000", "--processes", "auto"]
