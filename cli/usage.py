"""Click's complaints about a call in the house's one line: what was got, what was expected, what to do.

Click has the value that it refuses in its message alone, so the message is taken apart where it has to be; what the message does
not say (the choices, the range, the options that there are) comes from the command itself.
"""

import re
from difflib import get_close_matches
from math import isfinite

import click

_SHOWN = 100
_VALUE = re.compile(r"^(?:'(?P<quoted>.*)'|(?P<plain>\S+)) is not (?:one of|in the range|a valid|a finite)", re.DOTALL)
_FILE = re.compile(r"^\w+ '(?P<name>.*)' (?P<fault>[a-z ]+)\.?$", re.DOTALL)
_EXTRA = re.compile(r"\((?P<given>.*)\)\.?$", re.DOTALL)


def usage_line(error: click.ClickException, command: str = "") -> str:
    """Return what is wrong with a call.

    Args:
        error: as Click, or a command, raised it.
        command: what was called, for errors that do not say so.
    """
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else command
    return _said(error, context) + (f"; see {path} --help" if path and isinstance(error, click.UsageError) else "")


def _said(error: click.ClickException, context: click.Context | None) -> str:
    message = error.format_message().rstrip(".")
    match error:
        case click.NoSuchOption():
            return f"got the option {_cut(error.option_name)}; expected {_options(context, error.option_name)}"
        case click.MissingParameter():
            return f"got no {_name(error)}; expected {_meaning(error.param, context)}"
        case click.BadParameter() if error.param is not None:
            return f"got {_name(error)} {_value(error)}; expected {_wanted(error, error.param, context)}"
        case click.BadOptionUsage():
            flag = "not take" in message
            got, expected = ("with", "it alone, since it is a flag") if flag else ("without", f"{error.option_name} VALUE")
            return f"got {error.option_name} {got} a value; expected {expected}"
        case click.NoSuchCommand():
            known = context.command.list_commands(context) if context and isinstance(context.command, click.Group) else []
            near = get_close_matches(error.command_name, known, n=1)
            return f"got {_cut(error.command_name)}; expected one of {', '.join(known)}{_hint(near)}"
        case click.UsageError() if context is not None and message.startswith("Got unexpected extra"):
            found = _EXTRA.search(message)
            pieces = " ".join(context.command.collect_usage_pieces(context))
            return f"got {_cut(found['given'] if found else message)} beside the rest; expected {context.command_path} {pieces}"
        case _:
            return message


def _cut(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def _parameters(context: click.Context | None) -> list[click.Parameter]:
    return context.command.get_params(context) if context is not None else []


def _options(context: click.Context | None, given: str) -> str:
    known = [name for one in _parameters(context) if isinstance(one, click.Option) and not one.hidden
             for name in (*one.opts, *one.secondary_opts)]  # fmt: skip
    return f"one of {', '.join(known)}{_hint(get_close_matches(given, known, n=1))}"


def _hint(near: list[str]) -> str:
    return f", did you mean {near[0]}?" if near else ""


def _name(error: click.BadParameter) -> str:
    """Return what people type for a parameter: the longest name of an option, the metavar of an argument."""
    one = error.param
    if isinstance(one, click.Option):
        return max(one.opts, key=len)
    return (one.metavar or one.human_readable_name) if one is not None else "argument"


def _meaning(one: click.Parameter | None, context: click.Context | None) -> str:
    if isinstance(one, click.Option) and one.help:
        return f"it with a value: {one.help[:1].lower()}{one.help[1:].rstrip('.')}"
    if context is None:
        return "it to be given"
    return f"{context.command_path} {' '.join(context.command.collect_usage_pieces(context))}"


def _value(error: click.BadParameter) -> str:
    found = _VALUE.match(error.message)
    if found is None:
        file = _FILE.match(error.message)
        return f"{_cut(file['name'])} ({file['fault']})" if file else f"({error.message.rstrip('.')})"
    return _cut(found["quoted"] if found["quoted"] is not None else found["plain"])


def _wanted(error: click.BadParameter, one: click.Parameter, context: click.Context | None) -> str:
    kind = one.type
    if isinstance(kind, click.Choice):
        choices = [str(choice) for choice in kind.choices]
        found = _VALUE.match(error.message)
        near = get_close_matches((found["quoted"] if found else None) or "", choices, n=1)
        return f"one of {', '.join(choices)}{_hint(near)}"
    if isinstance(kind, click.IntRange):
        return f"a whole number{_range(kind.min, kind.max, kind.min_open)}"
    if isinstance(kind, click.FloatRange):
        return f"a number{_range(kind.min, kind.max, kind.min_open)}"
    return _meaning(one, context)


def _range(low: float | None, high: float | None, above: bool) -> str:
    start = f" {'above' if above else 'from'} {low:g}" if low is not None else ""
    return start + (f" to {high:,}".replace(",", "") if high is not None and isfinite(high) else "")
