"""The reports of an export: functions from frames of its tables to small frames, written as Parquet and a page."""
