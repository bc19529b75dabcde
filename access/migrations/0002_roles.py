"""The roles of console users, as groups of Django's. Users who could sign in before keep what they could do."""

from django.db import migrations

GROUPS = ("viewer", "operator", "admin", "bodies")


def make(apps, schema_editor):
    # Not always that of DATABASE_URL: a cell has the tables, too.
    database = schema_editor.connection.alias
    made = apps.get_model("auth", "Group").objects.using(database)
    groups = {name: made.get_or_create(name=name)[0] for name in GROUPS}
    for user in apps.get_model("auth", "User").objects.using(database).filter(is_staff=True):
        # A staff user read everything, bodies too, and changed nothing.
        roles = [groups["admin"]] if user.is_superuser else [groups["viewer"], groups["bodies"]]
        user.groups.add(*roles)


class Migration(migrations.Migration):
    dependencies = [("access", "0001_api_key"), ("auth", "0012_alter_user_first_name_max_length")]

    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
