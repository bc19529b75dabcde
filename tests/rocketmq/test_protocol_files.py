"""The protocol's files: Apache RocketMQ's own definition with its licence, and modules that are made of it."""

from mqbroker.rocketmq import service
from mqbroker.rocketmq.protocol import service_pb2
from tools.generate import protocol

UNIMPLEMENTED = {"PullMessage", "UpdateOffset", "GetOffset", "QueryOffset", "SyncLiteSubscription"}


def test_the_modules_are_what_the_definition_gives() -> None:
    differing = [path.name for path, text in protocol.generated().items() if path.read_text() != text]

    assert differing == []


def test_the_definition_has_its_licence_and_notice() -> None:
    for name in protocol.FILES:
        head = (protocol.PROTOCOL / protocol.PACKAGE / f"{name}.proto").read_text().partition("syntax")[0]
        assert "Licensed to the Apache Software Foundation" in head
        assert "Apache License, Version 2.0" in head
    assert "Apache Software Foundation" in (protocol.PROTOCOL / "NOTICE").read_text()


def test_every_call_of_the_definition_is_served_but_those_that_rocketmq_leaves_out() -> None:
    calls = {method.name for method in service_pb2.DESCRIPTOR.services_by_name["MessagingService"].methods}

    assert calls - service.handlers(read_whole=True).keys() == UNIMPLEMENTED
    assert service.handlers(read_whole=True).keys() - calls == set()
