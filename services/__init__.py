"""Use cases: all that pages and the command line may call. Nothing here prints or draws, and importing it loads no framework."""
