"""The audit, to which rows are only added: the database itself refuses everything else."""

import django.db.models.functions.datetime
from django.db import migrations, models

APPEND_ONLY = """
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit_entry takes new rows only: % is refused', tg_op USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER audit_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entry
FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
"""
UNDO = "DROP TRIGGER audit_entry_append_only ON audit_entry; DROP FUNCTION refuse_audit_change();"


class Migration(migrations.Migration):
    dependencies = [("access", "0003_read")]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("author_kind", models.TextField()),
                ("author", models.TextField()),
                ("action", models.TextField()),
                ("target", models.TextField()),
                ("reason", models.TextField(null=True)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                ("result", models.TextField()),
                ("detail", models.TextField(null=True)),
                ("request_id", models.TextField(null=True)),
                ("action_id", models.UUIDField(null=True)),
            ],
            options={
                "db_table": "audit_entry",
                "indexes": [
                    models.Index(fields=["target", "id"], name="audit_entry_target"),
                    models.Index(
                        condition=models.Q(("action_id__isnull", False)),
                        fields=["action_id", "id"],
                        name="audit_entry_action",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("author_kind__in", ("user", "key", "command"))), name="audit_author_known"
                    )
                ],
            },
        ),
        migrations.RunSQL(APPEND_ONLY, UNDO),
    ]
