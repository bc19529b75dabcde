"""The parts of a broker process: its runtime, its background work, and its encrypted secrets."""
