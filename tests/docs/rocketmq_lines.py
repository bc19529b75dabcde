"""The test of each line of docs/from-rocketmq.md, by the first words of the line.

Each test fails without what the line claims. The words behind it stand in the test or in what it names of its file.
"""

LINES = {
    # Calls of the producer.
    "sendMessageInTransaction(message, arg)": (
        "client/test_transaction_producer.py::test_the_local_transaction_runs_between_half_and_end",
        "send_message_in_transaction",
    ),
    "TransactionListener": (
        "client/test_transaction_producer.py::test_a_state_is_taken_in_rocketmqs_spelling",
        "COMMIT_MESSAGE",
    ),
    "TransactionSendResult": (
        "client/test_transaction_producer.py::test_the_result_has_what_rocketmqs_has",
        "queue_offset",
    ),
    "checkLocalTransaction": (
        "client/test_checks.py::test_a_signed_check_is_answered_from_the_producers_function",
        "CheckListener",
    ),
    "setExecutorService": (
        "client/test_check_executor.py::test_a_poller_with_an_executor_answers_several_at_once",
        "CheckExecutor",
    ),
    "endTransaction": ("transactions/test_ends.py::test_the_opposite_decision_is_refused", "transaction_ended"),
    "send(message)": ("store/test_queues.py::test_a_send_is_answered_with_its_place", "SEND_OK"),
    "send(list)": (
        "scheduling/test_batches.py::test_a_batch_takes_consecutive_offsets_of_one_queue",
        "send_batch",
    ),
    "send(message, selector, arg)": (
        "store/test_queues.py::test_messages_of_one_sharding_key_go_to_one_queue_in_the_order_they_were_sent",
        "sharding_key",
    ),
    "send(message, queue)": (
        "docs/test_rocketmq_claims.py::test_a_message_goes_to_the_queue_that_its_producer_names",
        "queue_id",
    ),
    "sendOneway": ("client/test_one_way.py::test_a_message_that_is_refused_is_counted_and_logged", "wait=False"),
    "recallMessage": (
        "scheduling/test_recalls.py::test_a_message_that_was_delivered_is_not_recalled",
        "already_delivered",
    ),
    "setDelayTimeLevel": (
        "transactions/test_halves.py::test_the_delay_of_a_half_message_counts_from_its_commit",
        "delay_",
    ),
    "SendMessageHook": (
        "client/test_hooks.py::test_what_a_hook_forbids_is_raised_to_its_caller_and_not_sent",
        "hooks=",
    ),
    "setCompressMsgBodyOverHowmuch": (
        "delivery/test_compressed_bodies.py::test_a_long_body_is_compressed_and_a_short_one_goes_as_it_is",
        '["compression"] == "zlib"',
    ),
    "setNamespace": (
        "namespaces/test_namespaces.py::test_two_teams_with_the_same_names_receive_their_own_messages",
        "theirs",
    ),
    "retryTimesWhenSendFailed": (
        "client/test_retries.py::test_a_send_is_repeated_with_the_same_message_id",
        "message_id",
    ),
    # Calls of the consumer.
    "DefaultMQPushConsumer": ("client/test_running.py::test_each_message_is_handled_and_acked", "run("),
    "priority of messages (5.4)": (
        "delivery/test_queue_order.py::test_queues_of_a_higher_number_come_first_and_what_comes_later_overtakes",
        "priority",
    ),
    "MessageListenerOrderly": (
        "delivery/test_ordered.py::test_a_failing_message_holds_up_its_key_and_no_other",
        "sharding_key",
    ),
    "ReconsumeLater": (
        "client/test_running.py::test_what_a_handler_raises_nacks_with_the_delay_that_it_asks_for",
        "Redeliver(",
    ),
    "SimpleConsumer.receive": (
        "delivery/test_receipts.py::test_a_delivery_that_is_extended_stays_hidden_longer",
        "extend",
    ),
    "DefaultLitePullConsumer": (
        "delivery/test_pulls.py::test_a_queue_reads_the_same_as_often_as_it_is_read",
        "pull",
    ),
    "tags": ("delivery/test_receive.py::test_a_filter_compares_the_tag_itself_and_not_its_hash", "filter: str"),
    "CONSUME_FROM_FIRST_OFFSET": (
        "delivery/test_receive.py::test_a_group_that_starts_at_the_latest_sees_only_what_comes_after_its_first_receive",
        "latest",
    ),
    "suspendCurrentQueueTimeMillis": (
        "delivery/test_ordered_outages.py::"
        "test_a_message_that_fails_waits_for_the_groups_policy_and_by_default_for_a_second",
        "retry_policy",
    ),
    "maxReconsumeTimes": (
        "delivery/test_receive.py::test_a_message_that_is_never_acked_becomes_a_dead_letter_of_its_group",
        "max_reconsume_times",
    ),
    "MAX_RECONSUME_TIMES` of": (
        "delivery/test_own_limits.py::test_the_limit_of_a_message_goes_before_that_of_its_group",
        "max_reconsume_times",
    ),
    # Names and properties.
    "%RETRY%<group>": (
        "control/test_topics.py::test_a_topic_of_the_brokers_own_says_that_it_takes_no_sends",
        "topic_forbidden",
    ),
    "RMQ_SYS_TRANS_HALF_TOPIC": (
        "transactions/test_internal_topics.py::test_a_half_message_is_in_the_half_topic_with_the_properties_of_rocketmq",
        "REAL_TOPIC",
    ),
    "TAGS": ("store/test_bodies.py::test_a_message_is_given_out_as_it_was_sent", "sharding_key"),
    "UNIQ_KEY": (
        "client/test_retries.py::test_a_half_is_repeated_with_the_same_transaction_and_message_ids",
        "transaction_id",
    ),
    "CHECK_IMMUNITY_TIME_IN_SECONDS": (
        "transactions/test_immunity.py::test_rocketmqs_property_is_the_immunity_and_a_bad_one_the_default",
        "IMMUNITY",
    ),
    "TRANSACTION_CHECK_TIMES": (
        "transactions/test_discards.py::test_a_discarded_message_is_not_delivered_but_kept_with_all_its_properties",
        "TRANSACTION_CHECK_TIMES",
    ),
    "RECONSUME_TIME": (
        "delivery/test_dead_letters.py::test_a_dead_letter_tells_where_it_comes_from_however_it_is_read",
        "RECONSUME_TIME",
    ),
    "RETRY_TOPIC": (
        "delivery/test_dead_letters.py::test_a_dead_letter_tells_where_it_comes_from_however_it_is_read",
        "RETRY_TOPIC",
    ),
    "ORIGIN_MESSAGE_ID": (
        "delivery/test_dead_letters.py::test_a_dead_letter_tells_where_it_comes_from_however_it_is_read",
        "ORIGIN_MESSAGE_ID",
    ),
    "MAX_RECONSUME_TIMES`, `BORN_HOST": (
        "delivery/test_own_limits.py::test_both_are_received_as_they_were_sent_by_each_way",
        "born_host",
    ),
    "bornHost": ("store/test_bodies.py::test_a_message_keeps_its_birth_and_its_trace", "born_at"),
    "queueId": ("store/test_queues.py::test_a_send_is_answered_with_its_place", "commit_log_offset"),
    "MIN_OFFSET": ("control/test_topics.py::test_bounds_tell_what_became_visible", "max_offset"),
    "CONSUME_START_TIME": (
        "docs/test_rocketmq_claims.py::test_a_delivery_has_the_properties_that_its_producer_gave_and_no_others",
        "CONSUME_START_TIME",
    ),
    "WAIT": ("docs/test_rocketmq_claims.py::test_a_property_of_rocketmqs_own_is_refused", "of_line("),
    # Settings.
    "transactionTimeOut": (
        "transactions/test_halves.py::test_the_answer_to_a_half_message_tells_when_it_is_asked_about",
        "next_check_at",
    ),
    "transactionCheckInterval": (
        "docs/test_rocketmq_claims.py::test_the_next_check_is_asked_an_interval_after_the_last_one",
        "TRANSACTION_CHECK_INTERVAL_SECONDS",
    ),
    "transactionCheckMax": (
        "transactions/test_discards.py::test_a_half_message_is_discarded_after_the_last_check_that_is_allowed",
        "check_times",
    ),
    "rejectTransactionMessage": (
        "control/test_producer_groups.py::test_a_group_that_rejects_transactions_begins_none",
        "reject_transaction_message",
    ),
    "messageDelayLevel": (
        "cli/test_settings.py::test_delay_levels_are_printed_as_rocketmq_writes_them",
        "MQBROKER_DELAY_LEVELS",
    ),
    "timerMaxDelaySec": (
        "store/test_fields.py::test_a_message_that_breaks_a_rule_is_refused_with_the_same_words_by_every_way_in",
        "is above the maximum of",
    ),
    "startAcceptSendRequestTimestamp": (
        "store/test_sends_forbidden.py::test_sends_are_refused_with_the_time_and_ends_and_receives_go_on",
        "sends_forbidden",
    ),
    "fileReservedTime": (
        "store/test_retention.py::test_a_segment_goes_when_it_has_been_closed_for_longer_than_the_retention",
        "retention",
    ),
    "maxMessageSize": ("store/test_limits.py::test_a_body_may_have_4_mebibytes_and_no_more", "message_too_large"),
    "autoCreateTopicEnable": (
        "delivery/test_first_use.py::test_a_receive_makes_no_topic_where_the_operator_does",
        "topic_not_exist",
    ),
    "flushDiskType": (
        "chaos/test_postgres_killed.py::test_what_was_acknowledged_outlives_five_kills_of_postgresql",
        "kill",
    ),
    # Commands.
    "updateTopic": ("control/test_topics.py::test_put_changes_what_is_given_and_leaves_the_rest", "put("),
    "updateSubGroup": ("control/test_consumer_groups.py::test_lag_tells_what_a_group_was_not_handed_yet", "lag"),
    "queryMsgById": (
        "lookup/test_traces.py::test_a_delivery_is_in_flight_until_it_is_acked_and_passed_after",
        "trace",
    ),
    "resetOffsetByTime": ("client/test_mqb.py::test_a_reset_is_a_dry_run_until_it_is_meant", '"reset"'),
    "queryMsgByOffset": ("client/test_mqb.py::test_tail_shows_the_last_messages_and_follows", '"tail"'),
    "reading": ("client/test_mqb.py::test_dead_letters_are_shown_and_redriven", '"redrive"'),
    "nothing": ("client/test_mqb.py::test_a_pending_transaction_is_listed_shown_and_decided_by_hand", '"resolve"'),
    "brokerStatus": ("control/test_stats.py::test_stats_count_what_was_done", "/v1/stats"),
    "TransactionMetrics": (
        "control/test_stats.py::test_every_web_process_tells_the_same_metrics",
        "mqbroker_half_messages_by_topic",
    ),
    "rocketmq_commit_messages_total": (
        "transactions/test_transaction_totals.py::test_each_end_of_a_transaction_counts_once_at_each_of_its_topics",
        "mqbroker_transactions_total",
    ),
    # Errors.
    "MESSAGE_ILLEGAL": (
        "store/test_fields.py::test_a_message_that_breaks_a_rule_is_refused_with_the_same_words_by_every_way_in",
        "message_illegal",
    ),
    "SYSTEM_BUSY": ("store/test_limits.py::test_an_end_is_taken_in_while_new_messages_are_refused", "503"),
    "FLUSH_DISK_TIMEOUT": (
        "chaos/test_database_hangs.py::test_a_connection_that_the_database_forgets_costs_one_answer",
        "outcome_unknown",
    ),
    "The producer group wrong": (
        "transactions/test_ends.py::test_an_end_is_refused_by_the_first_rule_that_it_breaks",
        "producer_group_wrong",
    ),
}
