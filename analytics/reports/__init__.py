"""The reports of an export: each is a function from frames of its tables to one small frame, written as Parquet and on
a page.
"""
