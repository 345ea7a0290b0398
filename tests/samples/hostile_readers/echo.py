"""An honest reader, for comparison: tells what it was given, and by how many threads."""

import threading
from typing import Any


def read(source: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return name, size, files and content, read in a thread of its own."""
    found: dict[str, Any] = {"name": source.name, "size": source.size, "names": list(source.names()), "options": options}

    def take() -> None:
        wanted = options.get("files", list(source.names()) or [""])
        found["content"] = []
        for name in wanted:
            with source.open(name) as file:
                found["content"].append(file.read().decode("utf-8", "replace"))

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return found
