"""Measures the broker, as ratios within one run: machines differ and are shared, their ratios hold."""
