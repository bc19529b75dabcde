"""A migration that needs the table to which every decision writes, for itself alone."""

from django.db import migrations

CONSTRAINT = "ALTER TABLE operation ADD CONSTRAINT operation_later CHECK (check_times >= 0) NOT VALID"


class Migration(migrations.Migration):
    dependencies = [("transactions", "0001_initial")]

    operations = [migrations.RunSQL(CONSTRAINT)]
