"""The command line's frame: finds commands when they are called for, and turns every fault into one line.

Commands are imported only when they are run, so that `./tandem --help` starts nothing of Tandem. Click writes usage errors
on three lines and shows tracebacks of everything else; a script wants one line and a code, hence the own `main`.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

import click

from cli.usage import usage_line
from core.errors import TandemError, one_line
from core.settings import settings_from

DONE, FINDING, BAD_INPUT, STOPPED = 0, 1, 2, 130
"""Exit codes: done; a finding (nothing feasible, a probe failed, a check failed); bad input; stopped by Ctrl-C."""

COMMANDS: dict[str, str] = {
    "app": "Open the portal in a browser.",
    "advise": "Say which framework, on which accelerators, split how, for a workload.",
    "split": "Say whether pools should share a workload, how, and what the link costs; run it.",
    "catalog": "Show accelerators, their slices and prices, and import price lists.",
    "devices": "Show what is attached, what could use it, and why something cannot.",
    "runtimes": "Show the runtimes that can be probed.",
    "probe": "Measure the kernels of this machine in each runtime.",
    "inspect": "Show what Tandem understood of a model, of code or of a workload.",
    "capture": "Trace your own model and write its graph, without weights or code.",
    "history": "List earlier runs.",
    "show": "Show one earlier run.",
    "report": "Write one run as a file.",
    "actual": "Enter the step time that a run really had.",
    "accuracy": "Show how far predictions may be trusted, on published measurements.",
    "check": "Check lint, types and layers.",
    "test": "Run every check and every test.",
    "work": "Do a queued run (started by Tandem itself).",
}
"""Each command and its line of help; `cli/<command>.py` holds its function of the same name."""

HIDDEN = ("work",)


class OneLineGroup(click.Group):
    """A group that loads its commands late and reports each fault as one line on stderr."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the public commands, in the order of `COMMANDS`."""
        return [name for name in COMMANDS if name not in HIDDEN]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, or None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        command.help = COMMANDS[cmd_name] + ("\n\n" + command.help if command.help else "")
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name.

        Raises:
            click.UsageError: there is none; the message names the nearest.
        """
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"got {args[0]!r}; expected a command{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run the command that the arguments name and exit with its code; without any, show the help."""
        given = list(sys.argv[1:] if args is None else args)
        if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - a closed one is None
            sys.exit(_refuse("got a closed standard output; expected an open one; send it to a file or to /dev/null"))
        try:
            code = super().main(given or ["--help"], prog_name, complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except click.ClickException as error:
            code = _refuse(usage_line(error, " ".join((prog_name or "./tandem", *given[:1]))))
        except TandemError as error:
            code = _refuse(str(error))
        except (click.Abort, KeyboardInterrupt):
            click.echo("tandem: stopped", err=True)
            code = STOPPED
        except BrokenPipeError:
            _drop_output()
            code = DONE
        except OSError as error:
            where = "" if error.filename is None else f" for {error.filename}"
            code = _refuse(
                f"got {error.strerror or type(error).__name__}{where}; expected files and an output that can be written; "
                "free space or mend the rights, and call again"
            )
            _drop_output()
        except Exception:  # noqa: BLE001 - a fault of ours: one line for the person, its trace in a file for us
            code = _fault()
        sys.exit(code if isinstance(code, int) else DONE)


def _drop_output() -> None:
    """Send what is still unwritten nowhere: it could not be written, and would fail again at the end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fault() -> int:
    """Keep the trace of a fault of ours in a file and say in one line where it is."""
    trace = traceback.format_exc()
    what = one_line(trace.strip().rpartition("\n")[2], 300)
    try:
        folder = settings_from(os.environ).home / "faults"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.txt"
        path.write_text(trace, encoding="utf-8")
        told = f"its trace is in {path}: please report it with that file"
    except (OSError, TandemError):
        told = one_line(trace, 1500)
    click.echo(f"tandem: got a fault of Tandem itself ({what}); expected none; {told}", err=True)
    return FINDING


def _refuse(text: str) -> int:
    click.echo(f"tandem: {one_line(text, 2000)}", err=True)
    return BAD_INPUT


@click.command(cls=OneLineGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def tandem() -> None:
    """Which framework, on which accelerators, split how, for this workload, and how sure are we?

    Exit codes: 0 done, 1 a finding (nothing feasible, a probe or check failed), 2 bad input, 130 stopped.
    """
