"""The data source `mqbroker` of Spark: its options, what it hands on to PostgreSQL, one reading, and the streams."""
