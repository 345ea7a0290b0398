"""Files that mean ill or are impossible, made where they are wanted: each with its drill and what may come of it."""
