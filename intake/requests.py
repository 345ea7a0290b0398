"""The classes of requests that a fleet is to serve: how many come, how long they are, how long they may take."""

from core.workload import RequestClass
from intake.fields import Section
from intake.wording import fault

_KEYS = ("name", "per_s", "prompt", "output", "first_token_ms", "per_token_ms", "latency_ms")
_MOST_TOKENS = 10**7
_MOST_MS = 1e9


def read_requests(top: Section, task: str) -> tuple[RequestClass, ...]:
    """Return the classes in the order of the document.

    Args:
        top: the document.
        task: of the workload; only `serve` has requests.

    Raises:
        BadInput: another task, a class without arrivals or lengths, a name twice, or a value that cannot be used.
    """
    entries = top.items("requests", "a list of classes such as [{name: chat, per_s: 5, prompt: 500, output: 200}]")
    if entries and task != "serve":
        raise fault("requests", task, "task serve", "write task: serve, or leave requests out")
    found = tuple(_class(f"requests[{i}]", entry) for i, entry in enumerate(entries))
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise fault("requests", f"two classes named {twice}", "a name of its own for each class", "rename one")
    return found


def _class(path: str, entry: object) -> RequestClass:
    section = Section(path, entry, _KEYS)
    name, per_s = section.text("name"), section.number("per_s", 1e-9, 1e12)
    prompt, output = section.whole("prompt", 1, _MOST_TOKENS), section.whole("output", 1, _MOST_TOKENS)
    if name is None or per_s is None or prompt is None or output is None:
        raise fault(path, ", ".join(section.values), "name, per_s, prompt and output", "add what is missing")
    return RequestClass(
        name, per_s, prompt, output,
        section.number("first_token_ms", 1e-6, _MOST_MS), section.number("per_token_ms", 1e-6, _MOST_MS),
        section.number("latency_ms", 1e-6, _MOST_MS),
    )
