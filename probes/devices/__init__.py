"""Finders of attached devices, one file a vendor; none initialises a framework or takes a lock on a device.

Each takes the root under which `/proc`, `/sys` and `/dev` are looked for, so that recorded machines are read like real ones.
A source that fails is a reason on the device, never an exception.
"""
