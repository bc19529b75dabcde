"""Creates append-only tables in migrations, partitioned by segment, with a partition for each existing segment."""

from typing import Any

from django.db import migrations

# A table that is added to a running broker needs a partition for every segment that may still be written or read.
PARTITIONS_OF_SEGMENTS = """
DO $$
DECLARE segment_id integer;
BEGIN
    FOR segment_id IN SELECT id FROM segment WHERE state <> 'dropped' LOOP
        EXECUTE format('CREATE TABLE IF NOT EXISTS %%I PARTITION OF %%I FOR VALUES IN (%%s)',
                       '{table}_' || segment_id, '{table}', segment_id);
    END LOOP;
END $$
"""


class CreatePartitionedModel(migrations.CreateModel):
    """CreateModel whose table is partitioned by its `segment_id`."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        whole_table = schema_editor.sql_create_table
        schema_editor.sql_create_table = whole_table + " PARTITION BY LIST (segment_id)"
        try:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        finally:
            schema_editor.sql_create_table = whole_table
        table = to_state.apps.get_model(app_label, self.name)._meta.db_table
        schema_editor.execute(PARTITIONS_OF_SEGMENTS.format(table=table).replace("%%", "%"), params=None)
