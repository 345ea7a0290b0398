"""Running a plan: a few steps to warm up and to compare with one runtime alone, then timed ones."""

from collections.abc import Callable

from core.errors import Cancelled
from core.settings import Settings
from core.split import Check
from probes.lease import Place
from probes.split.checks import loss_falls
from probes.split.handle import SideLost
from probes.split.messages import Done, Prove, Proven, Steps
from probes.split.session import SplitLimits, SplitSession
from probes.split.words import LinkSpec, Ran, SideSpec, SideStep, SplitFailure, SplitTask
from probes.split.work import check_task

WARM_STEPS = 3
FEWEST_STEPS, MOST_STEPS = 5, 1000


def verify(
    task: SplitTask,
    sides: tuple[SideSpec, SideSpec],
    settings: Settings,
    budget_s: float,
    link: LinkSpec | None = None,
    limits: SplitLimits | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_wait: Callable[[Place], None] = lambda _place: None,
) -> Ran | SplitFailure:
    """Run a task on two sides that are started for it.

    Args:
        task: to be run.
        sides: two of different names.
        settings: for leases and caches.
        budget_s: seconds of timed steps; starting and compiling come on top.
        link: between the sides; None for shared memory as fast as it is.
        limits: of the sides.
        should_stop: asked several times a second.
        on_wait: hears of the place in the queue for a device.

    Returns:
        What was measured and compared, or why it ended early with what was measured until then.

    Raises:
        BadInput: a model that cannot be run or cut, before anything is started.
    """
    check_task(task)
    with SplitSession(sides, settings, limits, should_stop, on_wait) as session:
        try:
            session.open(link or LinkSpec())
            return run(session, task, budget_s)
        except (SideLost, Cancelled) as error:
            return session.failure(error)


def run(
    session: SplitSession, task: SplitTask, budget_s: float, *, fresh: bool = True, prove: bool = True, warm: int = WARM_STEPS
) -> Ran:
    """Run a task on the sides of an open session, at least five timed steps.

    Args:
        session: with both sides open.
        task: to be run.
        budget_s: seconds of timed steps.
        fresh: open the models anew, as a comparison needs.
        prove: compare.
        warm: steps that are not timed; fewer than `WARM_STEPS` leave nothing to compare.

    Raises:
        SideLost: a side ended or failed.
        Cancelled: stopped meanwhile.
    """
    begun = session.begin(task, fresh=fresh)
    active = tuple(i for i in (0, 1) if task.mode != "data" or task.rows[i])
    checks: list[Check] = []
    step(session, active, warm)
    if prove:
        checks += compare(session, active, last=False)
    last_s = max(side[-1].stop_s - side[-1].start_s for side in session.steps if side)
    count = min(MOST_STEPS, max(FEWEST_STEPS, int(budget_s / max(last_s, 1e-6))))
    step(session, active, count + 1)
    if prove:
        checks += compare(session, active, last=True)
    versions = (session.versions[0], session.versions[1])
    every = Ran((tuple(session.steps[0]), tuple(session.steps[1])), (), begun.parameter_count, versions)
    if prove and task.mode != "rl":
        checks.append(loss_falls(every.losses))
    return Ran(timed_steps(session, warm), tuple(checks), begun.parameter_count, versions)


def timed_steps(session: SplitSession, warm: int) -> tuple[tuple[SideStep, ...], tuple[SideStep, ...]]:
    """Return the steps of each side behind the warm-up."""
    first, second = (tuple(side[warm:]) for side in session.steps)
    return first, second


def step(session: SplitSession, active: tuple[int, ...], count: int) -> None:
    """Let the active sides do so many steps; raises SideLost or Cancelled."""
    session.ask(dict.fromkeys(active, Steps(count)), Done, "steps")


def compare(session: SplitSession, active: tuple[int, ...], *, last: bool) -> list[Check]:
    """Let the active sides compare; raises SideLost or Cancelled."""
    return [check for reply in session.ask(dict.fromkeys(active, Prove(last)), Proven, "check") for check in reply.checks]
