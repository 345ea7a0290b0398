"""What XLA's compiler for CPUs stores of a program: a small model of its passes, its order of work and its placing of buffers.

`intake.picture` counts what any target holds. A compiler stores some things besides and spares others, and each does so in its
own way; here stands what is known of this one, in the order of its own pipeline: `lower` (operations rewritten), `library` and
`fusion` (what is computed inside what), `order` (when), `buffers` (where). Nothing is compiled or run. `followed` says
what of a program is followed, `effort` how much work it may be; of anything else `foretold` has the reason and no figure. The
compiler is that of jaxlib 0.10.2; `bench.compiled_memory` compares the two.
"""
