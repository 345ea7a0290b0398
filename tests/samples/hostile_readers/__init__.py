"""Readers that do what a reader must not, as if the input had taken over the process that reads it."""
