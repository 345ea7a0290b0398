"""A mixed integer program in rows, solved by HiGHS through SciPy's `milp`; it knows nothing of what is planned with it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from advisor.split.highs import milp


@dataclass(slots=True)
class Program:
    """Variables with bounds and a price each, and rows of constraints.

    Args:
        price, upper, whole: of each variable; all are zero or more.
        rows: (factors by variable, least, most).
    """

    price: list[float] = field(default_factory=list[float])
    upper: list[float] = field(default_factory=list[float])
    whole: list[bool] = field(default_factory=list[bool])
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list[tuple[dict[int, float], float, float]])

    def variable(self, price: float = 0.0, upper: float = float("inf"), whole: bool = False) -> int:
        """Add a variable and return its number."""
        self.price.append(price)
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.price) - 1

    def row(self, factors: dict[int, float], least: float = float("-inf"), most: float = float("inf")) -> None:
        """Add that the sum of factors times variables lies between two numbers."""
        if factors:
            self.rows.append((factors, least, most))

    def solve(self, limit_s: float, *, presolve: bool = True) -> "Solved":
        """Return the least price, proven where the time allows.

        Args:
            limit_s: seconds that the solver may take.
            presolve: whether the program is made smaller first. A small one is solved as fast without; and HiGHS writes a line
                of its own to the standard output where it has to mend what it made smaller, which is rarer then.
        """
        if not self.price:
            return Solved((), float("inf"), float("inf"), infeasible=True)
        from scipy import optimize, sparse

        solver: Any = optimize
        matrices: Any = sparse
        entries = [(i, j, value) for i, (factors, _, _) in enumerate(self.rows) for j, value in factors.items()]
        lines, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
        matrix = matrices.csr_array((values, (lines, columns)), shape=(len(self.rows), len(self.price)))
        limits = solver.LinearConstraint(matrix, [row[1] for row in self.rows], [row[2] for row in self.rows])
        done = milp(
            np.array(self.price), integrality=np.array(self.whole, dtype=float), constraints=limits if entries else (),
            bounds=solver.Bounds(0.0, np.array(self.upper)),
            options={"mip_rel_gap": 0.0, "time_limit": limit_s, "presolve": presolve},
        )
        if done.x is None:
            return Solved((), float("inf"), float("inf"), infeasible=bool(done.status == 2))
        bound = float(done.fun) if done.mip_dual_bound is None else min(float(done.mip_dual_bound), float(done.fun))
        return Solved(tuple(float(value) for value in done.x), float(done.fun), bound, infeasible=False)


@dataclass(frozen=True, slots=True)
class Solved:
    """What the solver found.

    Args:
        values: of the variables; empty where nothing was found.
        price, bound: of the best, and below which nothing is.
        infeasible: whether it is proven that nothing fits.
    """

    values: tuple[float, ...]
    price: float
    bound: float
    infeasible: bool
