"""The page of one message: its fields, its body, and its trace with each consumer group's standing."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from access import roles
from console.monitoring import trace
from console.pages import bodies, frame
from store.db import sync
from store.reading import lookup, previews
from store.stats import now

BODY_BYTES = 16 * 1024


@require_GET
def one(request: HttpRequest, message_id: UUID) -> HttpResponse:
    """The page of one message: where it is stored, its content, and its history."""
    copies = sync.call(lookup.find_copies, message_id)
    if not copies:
        hours = f"messages are kept for {settings.RESERVED_HOURS} hours"
        return frame.not_there(request, f"Message {message_id} does not exist: {hours}.", "topics")
    position = (copies[-1].segment_id, copies[-1].log_offset)
    stored = previews.at({message_id: position}, BODY_BYTES).get(message_id)
    found = shown(sync.call(trace.of, message_id, copies))
    return frame.show(
        request,
        "console/message.html",
        "Message",
        now=now(),
        trace=found,
        events=found["events"][::-1],
        entry=next((event for event in found["events"] if event["event"] == "visible"), None),
        stored=stored,
        copies=len(copies),
        properties=json.loads(stored.properties) if stored and stored.properties else {},
        body=bodies.preview(stored.beginning, stored.size, stored.body_form, BODY_BYTES) if stored else None,
        bodies=roles.may_read_bodies(request.user),
    )


def shown(found: trace.Trace) -> dict[str, Any]:
    """A trace without unset fields, because Django's template language treats a missing field like None."""
    plain: dict[str, Any] = msgspec.to_builtins(found, builtin_types=(datetime, UUID))
    return plain
