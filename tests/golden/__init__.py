"""Golden files: reports as they were, so that a change of what people and scripts read is seen in review."""
