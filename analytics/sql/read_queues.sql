-- Read the consume queues for Spark, which adds the closed ranges of each slice.
SELECT
    segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at,
    real_topic_id, real_queue_id
FROM consume_queue
