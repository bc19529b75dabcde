"""The page for RocketMQ's users: each line of its tables has a test, which is named here by the line's first words."""

import re

import pytest

from mqbroker.embedded.commands import ROOT

PAGE = (ROOT / "docs" / "from-rocketmq.md").read_text(encoding="utf-8")
HEADS = ("RocketMQ", "broker.conf", "mqadmin")

TESTS = {
    # Calls of the producer.
    "sendMessageInTransaction(message, arg)": "client/test_transaction_producer.py::the_local_transaction_runs_between",
    "TransactionListener": "client/test_transaction_producer.py::a_local_transaction_that_does_not_say_is_unknown",
    "TransactionSendResult": "client/test_transaction_producer.py::test_",
    "checkLocalTransaction": "client/test_checks.py::an_unsigned_altered_or_old_check_reaches_no_listener",
    "setExecutorService": "client/test_check_executor.py::a_poller_with_an_executor_answers_several_at_once",
    "endTransaction": "transactions/test_ends.py::the_opposite_decision_is_refused",
    "send(message)": "store/test_writer.py::test_",
    "send(list)": "scheduling/test_batches.py::a_batch_takes_consecutive_offsets_of_one_queue",
    "send(message, selector, arg)": "store/test_queues.py::messages_of_one_sharding_key_go_to_one_queue",
    "send(message, queue)": "store/test_queues.py::test_",
    "sendOneway": "client/test_hooks.py::a_one_way_send_that_is_forbidden_is_counted",
    "recallMessage": "scheduling/test_recalls.py::a_recalled_message_is_never_delivered",
    "setDelayTimeLevel": "transactions/test_delayed_commits.py::test_",
    "SendMessageHook": "client/test_hooks.py::what_a_hook_forbids_is_raised_to_its_caller_and_not_sent",
    "setCompressMsgBodyOverHowmuch": "delivery/test_compressed_bodies.py::a_long_body_is_compressed",
    "setNamespace": "namespaces/test_namespaces.py::two_teams_with_the_same_names_receive_their_own_messages",
    "retryTimesWhenSendFailed": "client/test_retries.py::a_send_is_repeated_with_the_same_message_id",
    # Calls of the consumer.
    "DefaultMQPushConsumer": "client/test_running.py::each_message_is_handled_and_acked",
    "MessageListenerOrderly": "delivery/test_ordered.py::a_failing_message_holds_up_its_key_and_no_other",
    "ReconsumeLater": "delivery/test_nacks.py::test_",
    "SimpleConsumer.receive": "delivery/test_receipts.py::a_delivery_that_is_extended_stays_hidden_longer",
    "DefaultLitePullConsumer": "delivery/test_pulls.py::a_queue_reads_the_same_as_often_as_it_is_read",
    "priority of messages (5.4)": "delivery/test_queue_order.py::test_",
    "suspendCurrentQueueTimeMillis": "delivery/test_ordered_outages.py::a_message_that_fails_waits_for_the_groups",
    "tags": "delivery_filters/test_filter_forms.py::a_tag_expression_takes_its_own_tags",
    "CONSUME_FROM_FIRST_OFFSET": "delivery/test_receive.py::a_group_that_starts_at_the_latest_sees_only",
    "maxReconsumeTimes": "delivery/test_dead_letters.py::test_",
    "MAX_RECONSUME_TIMES` of": "delivery/test_own_limits.py::test_",
    # Names and properties.
    "%RETRY%<group>": "control/test_topics.py::the_brokers_own_topics_can_be_read_but_not_changed",
    "RMQ_SYS_TRANS_HALF_TOPIC": "transactions/test_internal_topics.py::a_half_message_is_in_the_half_topic",
    "TAGS": "delivery_filters/test_filter_forms.py::words_of_sql_are_names_of_properties",
    "UNIQ_KEY": "client/test_retries.py::a_half_is_repeated_with_the_same_transaction_and_message_ids",
    "CHECK_IMMUNITY_TIME_IN_SECONDS": "transactions/test_immunity.py::rocketmqs_property_is_the_immunity",
    "TRANSACTION_CHECK_TIMES": "transactions/test_discards.py::a_discarded_message_is_not_delivered_but_kept",
    "RECONSUME_TIME": "delivery/test_dead_letters.py::test_",
    "RETRY_TOPIC": "delivery/test_dead_letters.py::a_redrive_to_the_origin_reaches_no_other_group_of_the_topic",
    "ORIGIN_MESSAGE_ID": "delivery/test_dead_letters.py::a_redriven_message_that_fails_again_is_a_dead_letter_again",
    "MAX_RECONSUME_TIMES`, `BORN_HOST": "delivery/test_own_limits.py::test_",
    "bornHost": "delivery/test_own_limits.py::test_",
    "queueId": "transactions/test_internal_topics.py::an_end_is_in_the_op_topic_with_the_tag_d_and_the_offset",
    "MIN_OFFSET": "control/test_topics.py::bounds_tell_what_became_visible",
    "CONSUME_START_TIME": "delivery/test_receipts.py::test_",
    "WAIT": "store/test_bodies.py::test_",
    # Settings.
    "transactionTimeOut": "transactions/test_lines.py::a_line_is_asked_about_when_it_is_due_and_no_sooner",
    "transactionCheckInterval": "transactions/test_lines.py::a_line_is_asked_about_when_it_is_due_and_no_sooner",
    "transactionCheckMax": "transactions/test_discards.py::test_",
    "rejectTransactionMessage": "control/test_producer_groups.py::a_group_that_rejects_transactions_begins_none",
    "messageDelayLevel": "cli/test_settings.py::delay_levels_are_printed_as_rocketmq_writes_them",
    "timerMaxDelaySec": "scheduling/test_delays.py::test_",
    "startAcceptSendRequestTimestamp": "store/test_sends_forbidden.py::test_",
    "fileReservedTime": "store/test_retention.py::a_segment_goes_when_it_has_been_closed_for_longer",
    "maxMessageSize": "delivery/test_compressed_bodies.py::a_bomb_is_too_large_before_it_has_taken_memory",
    "autoCreateTopicEnable": "delivery/test_first_use.py::test_",
    "flushDiskType": "chaos/test_postgres_killed.py::what_was_acknowledged_outlives_five_kills_of_postgresql",
    # Commands.
    "updateTopic": "control/test_topics.py::topics_are_listed_by_name_page_by_page",
    "updateSubGroup": "control/test_consumer_groups.py::lag_tells_what_a_group_was_not_handed_yet",
    "queryMsgById": "lookup/test_traces.py::test_",
    "resetOffsetByTime": "delivery/test_offsets.py::a_dry_run_tells_exactly_what_the_reset_does",
    "queryMsgByOffset": "client/test_mqb.py::test_",
    "reading": "delivery/test_dead_letters.py::a_redrive_of_some_is_answered_for_each_in_its_order",
    "nothing": "client/test_mqb.py::test_",
    "brokerStatus": "control/test_stats.py::stats_count_what_was_done",
    "TransactionMetrics": "transactions/test_transaction_stats.py::test_",
    "rocketmq_commit_messages_total": "transactions/test_transaction_totals.py::each_end_of_a_transaction_counts_once",
    # Errors.
    "MESSAGE_ILLEGAL": "access/test_access.py::test_",
    "SYSTEM_BUSY": "store/test_in_flight.py::test_",
    "FLUSH_DISK_TIMEOUT": "store/test_pipeline.py::an_answer_that_this_process_cannot_read_leaves_the_outcome_unknown",
    "The producer group wrong": "transactions/test_ends.py::test_",
}


def lines() -> list[str]:
    """The first cell of each line of the page's tables."""
    cells = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("|") and "---" not in line]
    return [cell for cell in cells if cell not in HEADS]


def starts(cell: str, name: str) -> bool:
    return re.sub(r"^`", "", cell).startswith(name)


def test_each_line_of_the_tables_has_a_test() -> None:
    untested = [cell for cell in lines() if not any(starts(cell, name) for name in TESTS)]
    assert untested == []


@pytest.mark.parametrize("name", TESTS)
def test_each_test_is_there_and_of_a_line(name: str) -> None:
    path, _, function = TESTS[name].partition("::")

    assert any(starts(cell, name) for cell in lines())
    found = (ROOT / "tests" / path).read_text(encoding="utf-8")
    assert re.search(rf"def (?:test_)?{function}", found) is not None
