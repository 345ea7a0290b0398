"""The field's own ways to time, written as its users write them; imports nothing of Tandem's probes."""
