"""The words of Tandem: frozen dataclasses, units, errors, settings and statistics; standard library only."""
