"""Reports: exports the broker's tables for analysts."""
