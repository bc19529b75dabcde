"""What reads the broker's tables as Spark frames: JDBC and its driver, or ADBC."""
