"""The data source `mqbroker` of Spark: its options, the filters that PostgreSQL applies, batch reads, and streams."""
