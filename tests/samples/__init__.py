"""Samples: rich, consistent values of the words, for tests and for looking at pages. Nothing here was measured."""
