"""What a drill is made of: faults, the scene that they happen in, and the process that starts and watches a run."""
