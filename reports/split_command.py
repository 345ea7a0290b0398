"""The command line that asks for a split again, as pages and reports show it."""

import shlex

from core.split import SplitOptions


def command(workload: str, options: SplitOptions, objective: str | None = None) -> str:
    """Return the command line that asks for the same split, safe to paste into a shell.

    Args:
        workload: a preset, or the file that the document was saved in.
        options: as asked.
        objective: None leaves the workload's own.
    """
    words = ["./tandem", "split", workload]
    for pool in options.pools:
        words += ["--pool", pool]
    if options.link_bytes_per_s is not None:
        words += ["--link-gbps", f"{options.link_bytes_per_s * 8e-9:.6g}"]
    if options.link_latency_s is not None:
        words += ["--link-latency-ms", f"{options.link_latency_s * 1e3:.6g}"]
    if options.mode:
        words += ["--mode", options.mode]
    if options.least_saving != SplitOptions(()).least_saving:
        words += ["--least-saving", f"{options.least_saving:g}"]
    if objective:
        words += ["--objective", objective]
    return shlex.join([*words, "--verify"] if options.verify else words)
