"""Totals of the ends of transactions, by topic and producer group, and how far the operations are counted into them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("transactions", "0008_lines")]

    operations = [
        migrations.CreateModel(
            name="CountedOperations",
            fields=[
                ("first_operation", models.BigIntegerField(primary_key=True, serialize=False)),
                ("next_id", models.BigIntegerField()),
                ("until_id", models.BigIntegerField()),
                ("settles_at", models.BigIntegerField()),
            ],
            options={"db_table": "counted_operations"},
        ),
        migrations.CreateModel(
            name="TransactionTotal",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "first_operation",
                        "topic_id",
                        "producer_group_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("first_operation", models.BigIntegerField()),
                ("topic_id", models.IntegerField()),
                ("producer_group_id", models.IntegerField()),
                ("committed", models.BigIntegerField()),
                ("rolled_back", models.BigIntegerField()),
                ("discarded", models.BigIntegerField()),
            ],
            options={"db_table": "transaction_total"},
        ),
    ]
