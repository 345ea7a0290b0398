"""Finds where each part runs: exact programs for a step in turn and for steps into each other, a search for one overlapped step.

*In turn*, the step is the sum of the parts and of the messages: with two pools and room enough a minimum cut, whose linear
program is whole by itself; memory and more pools make it a mixed integer program. *Into each other*, steps follow no faster than
the busiest lane is busy, nor than any loop of waiting allows over the steps that it spans (the two bounds of modulo scheduling);
the program finds the placement for which the greater one is least. *Overlapped*, the whole schedule is searched by CP-SAT.

Source: Stone, IEEE Transactions on Software Engineering 3, 1977 (assignment as a cut); Rau, MICRO 27, 1994 (bounds of modulo
scheduling).
"""

from collections.abc import Mapping
from importlib import import_module
from itertools import product
from typing import Any

from advisor.split.operators_words import OperatorProblem
from advisor.split.serving_program import Program, Solved

_GRAIN = 1_000_000
"""Whole numbers into which CP-SAT's step is cut: a part in a million is lost in rounding."""
_NOTHING = Solved((), float("inf"), float("inf"), infeasible=True)


class Choice:
    """The variables of a placement in a program: a part on a pool, and two ends of a flow on two pools."""

    def __init__(self, problem: OperatorProblem, program: Program, serial: bool) -> None:
        """Add them, with prices where the whole step is their sum.

        Args:
            problem: parts and pools.
            program: to which they are added.
            serial: whether each costs its seconds.
        """
        self.problem = problem
        self.on: list[dict[int, int]] = []
        self.across: list[dict[tuple[int, int], int]] = []
        pools = range(len(problem.pools))
        for part in problem.parts:
            able = [pool for pool in pools if not part.on[pool].missing]
            self.on.append({pool: program.variable(part.on[pool].seconds if serial else 0.0, 1.0, whole=True) for pool in able})
            program.row(dict.fromkeys(self.on[-1].values(), 1.0), 1.0, 1.0)
        for pool in pools:
            most = problem.memory_bytes[pool]
            if most is not None:
                scale = most or 1.0
                sizes = {on[pool]: part.on[pool].memory_bytes / scale for part, on in zip(problem.parts, self.on, strict=True)
                         if pool in on}
                program.row(sizes, most=most / scale)
        if problem.least_pools > 1:
            used = [program.variable(0.0, 1.0, whole=True) for _ in pools]
            for pool in pools:
                program.row({**{on[pool]: 1.0 for on in self.on if pool in on}, used[pool]: -1.0}, least=0.0)
            program.row(dict.fromkeys(used, 1.0), least=float(problem.least_pools))
        for number in range(len(problem.flows)):
            self.across.append(self._add_flow(program, number, serial))

    def _add_flow(self, program: Program, number: int, serial: bool) -> dict[tuple[int, int], int]:
        flow = self.problem.flows[number]
        found: dict[tuple[int, int], int] = {}
        for a, b in product(self.on[flow.source], self.on[flow.target]):
            if a == b:
                continue
            there, back = crossings(self.problem, number, a, b)
            ends = {self.on[flow.source][a]: 1.0, self.on[flow.target][b]: 1.0}
            if there is None or back is None:
                program.row(ends, most=1.0)
            elif there + back > 0:
                found[a, b] = program.variable(there + back if serial else 0.0, 1.0)
                program.row({**ends, found[a, b]: -1.0}, most=1.0)
        return found

    def placed(self, values: tuple[float, ...]) -> tuple[int, ...]:
        """Return the pool of each part."""
        return tuple(max(on, key=lambda pool, on=on: values[on[pool]]) for on in self.on)


def _able(problem: OperatorProblem) -> bool:
    """Return whether every part runs on some pool."""
    return all(any(not one.missing for one in part.on) for part in problem.parts)


def crossings(problem: OperatorProblem, flow: int, source: int, target: int) -> tuple[float | None, float | None]:
    """Return seconds of a flow's activations and of its gradients over two pools; None where there is no link."""
    one = problem.flows[flow]
    return problem.crossing_s(one.forward_bytes, source, target), problem.crossing_s(one.backward_bytes, target, source)


def solve_serial(problem: OperatorProblem, limit_s: float) -> tuple[Solved, tuple[int, ...]]:
    """Return the placement whose passes and messages take least in sum; nothing placed where none fits."""
    program = Program()
    if not _able(problem):
        return _NOTHING, ()
    choice = Choice(problem, program, serial=True)
    solved = program.solve(limit_s)
    return solved, choice.placed(solved.values) if solved.values else ()


def solve_bounds(problem: OperatorProblem, limit_s: float, one_step: bool = False) -> tuple[Solved, tuple[int, ...]]:
    """Return the placement for which steps can follow each other fastest by both bounds; nothing placed where none fits.

    Args:
        problem: parts and flows.
        limit_s: seconds that the solver may take.
        one_step: whether a single step is meant: it ends no sooner than its busiest lane, or its longest way, allows.
    """
    program = Program()
    if not _able(problem):
        return _NOTHING, ()
    choice = Choice(problem, program, serial=False)
    period = program.variable(1.0)
    for pool in range(len(problem.pools)):
        work = {on[pool]: part.on[pool].seconds for part, on in zip(problem.parts, choice.on, strict=True) if pool in on}
        program.row({**work, period: -1.0}, most=0.0)
    for lane in product(range(len(problem.pools)), repeat=2):
        load: dict[int, float] = {}
        for number, across in enumerate(choice.across):
            for (a, b), variable in across.items():
                there, back = crossings(problem, number, a, b)
                load[variable] = load.get(variable, 0.0) + ((there or 0.0) if (a, b) == lane else 0.0)
                load[variable] += (back or 0.0) if (b, a) == lane else 0.0
        program.row({**load, period: -1.0}, most=0.0)
    _add_loops(problem, program, choice, period, one_step)
    solved = program.solve(limit_s)
    return solved, choice.placed(solved.values) if solved.values else ()


def _add_loops(problem: OperatorProblem, program: Program, choice: Choice, period: int, one_step: bool) -> None:
    """Add when passes begin, and that a part's next forward pass waits for its last backward pass, or for an earlier one.

    Of one step alone, that it ends with the last backward pass.
    """
    begins = [program.variable() for _ in problem.parts]
    backs = [program.variable() for _ in problem.parts]
    for number, flow in enumerate(problem.flows):
        there = {variable: crossings(problem, number, *ends)[0] or 0.0 for ends, variable in choice.across[number].items()}
        runs = {on: problem.parts[flow.source].on[pool].forward_s for pool, on in choice.on[flow.source].items()}
        _after(program, begins[flow.target], begins[flow.source], {**runs, **there})
        if flow.backward_bytes > 0:
            back = {variable: crossings(problem, number, *ends)[1] or 0.0 for ends, variable in choice.across[number].items()}
            runs = {on: problem.parts[flow.target].on[pool].backward_s for pool, on in choice.on[flow.target].items()}
            _after(program, backs[flow.source], backs[flow.target], {**runs, **back})
    for part, on, begin, back in zip(problem.parts, choice.on, begins, backs, strict=True):
        _after(program, back, begin, {variable: part.on[pool].forward_s for pool, variable in on.items()})
        runs = {variable: -part.on[pool].backward_s for pool, variable in on.items()}
        loop = {back: -1.0, period: 1.0} if one_step else {begin: 1.0, back: -1.0, period: 1.0 + part.ahead}
        program.row({**loop, **runs}, least=0.0)


def _after(program: Program, later: int, earlier: int, between: Mapping[int, float]) -> None:
    program.row({later: 1.0, earlier: -1.0, **{variable: -seconds for variable, seconds in between.items()}}, least=0.0)


def solve_overlapped(
    problem: OperatorProblem, hint: tuple[int, ...], most_s: float, limit_s: float
) -> tuple[tuple[int, ...], float, dict[str, float]] | None:
    """Return placement, bound and beginnings (by what is done) of the fastest step that CP-SAT finds; None when it finds none.

    Args:
        problem: parts and flows.
        hint: a placement to begin with; it takes `most_s` at most.
        most_s: above zero.
        limit_s: seconds that the solver may take.
    """
    cp_model: Any = import_module("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    scale = _GRAIN / most_s
    search = _Search(problem, model, scale, int(_GRAIN * 1.01) + 4 * (len(problem.parts) + len(problem.flows)))
    search.add_parts()
    search.add_flows()
    search.close()
    for number, pool in enumerate(hint):
        for other, literal in search.on[number].items():
            model.add_hint(literal, int(other == pool))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit_s
    solver.parameters.num_search_workers = 1
    solver.parameters.random_seed = 1
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    placed = tuple(next(pool for pool, literal in on.items() if solver.boolean_value(literal)) for on in search.on)
    begins = {name: solver.value(variable) / scale for name, variable in search.begins.items()}
    return placed, solver.best_objective_bound / scale, begins


class _Search:
    """The schedule of one step as a model of CP-SAT: optional intervals that do not overlap on a lane."""

    def __init__(self, problem: OperatorProblem, model: Any, scale: float, horizon: int) -> None:
        self.problem, self.model, self.scale, self.horizon = problem, model, scale, horizon
        self.on: list[dict[int, Any]] = []
        self.begins: dict[str, Any] = {}
        self.ends: dict[str, Any] = {}
        self.lanes: dict[tuple[int, int], list[Any]] = {}

    def add_parts(self) -> None:
        """Add both passes of each part on each pool that it can run on."""
        for number, part in enumerate(self.problem.parts):
            able = [pool for pool in range(len(self.problem.pools)) if not part.on[pool].missing]
            on = {pool: self.model.new_bool_var(f"{number} on {pool}") for pool in able}
            self.model.add_exactly_one(on.values())
            self.on.append(on)
            self._add(f"f{number}", {(pool, pool): (on[pool], part.on[pool].forward_s) for pool in able})
            self._add(f"b{number}", {(pool, pool): (on[pool], part.on[pool].backward_s) for pool in able})
            self.model.add(self.begins[f"b{number}"] >= self.ends[f"f{number}"])
        for pool, most in enumerate(self.problem.memory_bytes):
            if most is not None:
                sizes = [on[pool] * round(part.on[pool].memory_bytes)
                         for part, on in zip(self.problem.parts, self.on, strict=True) if pool in on]
                self.model.add(sum(sizes) <= int(most))
        if self.problem.least_pools > 1:
            used = [self.model.new_bool_var(f"used {pool}") for pool in range(len(self.problem.pools))]
            for pool, one in enumerate(used):
                self.model.add_bool_or([on[pool] for on in self.on if pool in on] + [one.negated()])
            self.model.add(sum(used) >= self.problem.least_pools)

    def add_flows(self) -> None:
        """Add the messages of each flow, there and back, between each two pools."""
        for number, flow in enumerate(self.problem.flows):
            self.model.add(self.begins[f"f{flow.target}"] >= self.ends[f"f{flow.source}"])
            there: dict[tuple[int, int], tuple[Any, float]] = {}
            back: dict[tuple[int, int], tuple[Any, float]] = {}
            for a, b in product(self.on[flow.source], self.on[flow.target]):
                if a == b:
                    continue
                ends = (self.on[flow.source][a], self.on[flow.target][b])
                forward_s, backward_s = crossings(self.problem, number, a, b)
                if forward_s is None or backward_s is None:
                    self.model.add_bool_or([end.negated() for end in ends])
                    continue
                both = self.model.new_bool_var(f"flow {number} {a} {b}")
                self.model.add_bool_and(ends).only_enforce_if(both)
                self.model.add_bool_or([end.negated() for end in ends] + [both])
                there[a, b], back[b, a] = (both, forward_s), (both, backward_s)
            self._send(f"m{number}", there, f"f{flow.source}", f"f{flow.target}")
            if flow.backward_bytes > 0:
                self.model.add(self.begins[f"b{flow.source}"] >= self.ends[f"b{flow.target}"])
                self._send(f"r{number}", back, f"b{flow.target}", f"b{flow.source}")

    def close(self) -> None:
        """Let no lane do two things at once, and ask for the earliest end."""
        for intervals in self.lanes.values():
            self.model.add_no_overlap(intervals)
        end = self.model.new_int_var(0, self.horizon, "end")
        for one in self.ends.values():
            self.model.add(end >= one)
        self.model.minimize(end)

    def _add(self, name: str, ways: dict[tuple[int, int], tuple[Any, float]]) -> None:
        """Add something that is done in one of some ways, or not at all."""
        begin = self.model.new_int_var(0, self.horizon, name)
        self.begins[name], self.ends[name] = begin, begin
        for lane, (literal, seconds) in ways.items():
            size = round(seconds * self.scale)
            if size:
                interval = self.model.new_optional_fixed_size_interval_var(begin, size, literal, f"{name} {lane}")
                self.lanes.setdefault(lane, []).append(interval)
                self.ends[name] += size * literal

    def _send(self, name: str, ways: dict[tuple[int, int], tuple[Any, float]], before: str, after: str) -> None:
        """Add a message between two passes."""
        if any(seconds > 0 for _, seconds in ways.values()):
            self._add(name, ways)
            self.model.add(self.begins[name] >= self.ends[before])
            self.model.add(self.begins[after] >= self.ends[name])
