"""Exports as tables of Delta Lake and of Iceberg, which use the Parquet files of the export."""
