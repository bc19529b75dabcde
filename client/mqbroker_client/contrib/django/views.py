"""The view that answers the broker's checks."""

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from mqbroker_client.contrib.django.apps import config
from mqbroker_client.core.checks import MAX_CALL_BYTES


# The broker has no session, so its signature is checked instead of a CSRF token. The view runs outside of a
# transaction, because a transaction that holds SQLite's write lock would prevent the barrier from writing its row.
@csrf_exempt
@require_POST
def checks(request: HttpRequest) -> HttpResponse:
    # The body is read directly, because `request.body` refuses more than DATA_UPLOAD_MAX_MEMORY_SIZE, and a message may
    # be larger.
    reply = config().listener.reply(request.headers, request.read(MAX_CALL_BYTES + 1))
    if config().options.on_unavailable == "keep":
        for steps in config().all_steps.values():
            steps.kept.send_in_background()
    return HttpResponse(reply.body, status=reply.status, content_type=reply.content_type)


for alias in config().options.databases:
    transaction.non_atomic_requests(using=alias)(checks)
