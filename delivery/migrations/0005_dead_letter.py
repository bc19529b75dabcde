from django.db import migrations

# `dead_letter`: which letters count, and why each died. A query names one group, and the topic of its letters. Joined
# by their names, the planner takes the letters for few, and sorts all where it could walk the first by their offset.
# What walks them names queue 0, the topic's only one, too; what has the place of a message goes by that. The reason
# is that of the last nack that gave one; it costs nothing where it is not selected.
# `dead_letter_message`: the same with their messages, each found by its place.
# A column that a view selects keeps its type until the view is made anew.
VIEWS = """
CREATE VIEW dead_letter AS
SELECT
    g.id AS group_id, e.topic_id, e.queue_id, e.queue_offset, e.tags_code, e.reconsume_times, e.entered_at,
    e.log_segment, e.log_offset,
    (
        SELECT n.reason
        FROM nack AS n
        WHERE n.log_offset = e.log_offset AND n.group_id = g.id
        ORDER BY n.nacked_at DESC
        LIMIT 1
    ) AS reason
FROM consume_queue AS e
CROSS JOIN consumer_group AS g
WHERE NOT EXISTS (SELECT 1 FROM redrive AS r WHERE r.group_id = g.id AND r.queue_offset = e.queue_offset);

CREATE VIEW dead_letter_message AS
SELECT
    d.group_id, d.topic_id, d.queue_id, d.queue_offset, d.tags_code, d.reconsume_times, d.entered_at, d.log_segment,
    d.log_offset, d.reason, m.message_id, m.topic_id AS origin_topic_id, m.queue_id AS origin_queue_id,
    coalesce(
        (SELECT t.name FROM topic AS t WHERE t.id = m.topic_id), '(deleted topic ' || m.topic_id || ')'
    ) AS origin,
    m.tags, m.keys, m.size
FROM dead_letter AS d
CROSS JOIN LATERAL (
    SELECT o.message_id, o.topic_id, o.queue_id, o.tags, o.keys, octet_length(o.body) AS size
    FROM commit_log AS o
    WHERE o.segment_id = d.log_segment AND o.log_offset = d.log_offset
    LIMIT 1
) AS m;
"""
UNDO = "DROP VIEW dead_letter_message; DROP VIEW dead_letter;"


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0004_nack"),
        ("store", "0005_entry_due_at"),
    ]

    operations = [migrations.RunSQL(VIEWS, UNDO)]
