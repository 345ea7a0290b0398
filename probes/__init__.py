"""Measures: devices, runtimes, blocks and kernels; every probe ends in a Measurement or a ProbeFailure.

This file imports nothing, and neither do the modules that a worker runs beyond the standard library, numpy and its framework:
a worker's interpreter may be one that a user already has.
"""
