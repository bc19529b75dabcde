from django.db import migrations

# The scope `read` exists from here on; until now a key could read every topic, and it still can.
READ_EVERYTHING = """
    UPDATE api_key SET scopes = scopes || '["read:*"]' WHERE NOT scopes ? 'read:*'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0002_roles"),
    ]

    operations = [
        migrations.RunSQL(READ_EVERYTHING, migrations.RunSQL.noop),
    ]
