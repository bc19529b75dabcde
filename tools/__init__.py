"""The commands that develop and measure the broker: checks, tests, benchmarks, faults, locks. No image has them."""
