"""A split plan run for real: two runtimes in two processes, one model between them, tensors over a channel.

`probes.split.run` coordinates, `probes.split.side` is one side, `probes.split.modes` says what each does in a step.
"""
