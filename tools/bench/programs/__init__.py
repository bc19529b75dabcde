"""Programs that benchmarks run in separate processes."""
