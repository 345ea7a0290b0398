"""Programs that measure Tandem itself and print a table; none prints a figure that it did not just measure."""
