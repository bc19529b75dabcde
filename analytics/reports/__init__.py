"""The reports of an export: frames of its tables in, one small frame each out, as Parquet files and as a page."""
