"""The export of the broker's tables to Parquet files, by Spark."""
