"""What a script sees: one file a command; the only room that prints. It holds no logic: every command calls `services`."""
