"""Readers of model files, one a format; each runs in a sandboxed worker, on data that somebody else made.

A reader is a module with
    TITLE: what the format is called;
    SUFFIXES: of the files that it reads, with the dot; empty where it is told by content alone;
    NEEDS: distributions that it imports, before the sandbox is closed; empty where it is ours alone;
    fits(name, head) -> whether a file of this name, or with these first 4096 bytes, is its own;
    read(source, options) -> what `core.graph_json.graph_to_json` gives; raises BadInput for what it cannot use.

Readers are bounded: counts, depths and sizes that a file claims are checked against what is there before anything is made of
them. Nothing that a file names is opened, imported or run.
"""
