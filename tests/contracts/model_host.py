"""A process that holds models of one runtime for tests: pickled calls on standard input, pickled answers where its output went.

Standard library and the project only, so that it runs in every runtime's own interpreter.
"""

import os
import pickle
import sys
from importlib import import_module

from core.errors import BadInput
from probes.backends import backend_module


def main(runtime: str) -> None:
    """Answer calls until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    module = backend_module(runtime)
    backend = module.open_backend(runtime, "cpu")
    models = import_module(f"{module.__name__}_model")
    held: dict[str, object] = {}
    while True:
        try:
            name, method, given, named = pickle.load(sys.stdin.buffer)
        except EOFError:
            os._exit(0)  # a framework takes seconds to take itself apart
        try:
            if method == "open":
                held[name] = models.open_model(backend, *given, **named)
                answer = None
            else:
                attribute = getattr(held[name], method)
                answer = attribute(*given, **named) if callable(attribute) else attribute
        except BadInput as refusal:
            answer = refusal.args[0]
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
