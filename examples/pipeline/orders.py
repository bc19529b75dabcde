"""A topic, its cleaned table, and the orders of each hour: `spark-pipelines run` updates both tables."""

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession

from analytics.stream import register

spark = SparkSession.active()
register(spark)


@pipelines.table
def orders() -> DataFrame:
    topic = spark.readStream.format("mqbroker").option("topic", "orders").load()
    return topic.where("body_bytes > 0").selectExpr("message_id", "entered_at", "CAST(body AS STRING) AS body")


@pipelines.materialized_view
def orders_by_hour() -> DataFrame:
    return spark.table("orders").selectExpr("date_trunc('hour', entered_at) AS hour").groupBy("hour").count()
