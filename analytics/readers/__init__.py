"""Reads the broker's tables as Spark frames, by ADBC or by JDBC with its driver."""
