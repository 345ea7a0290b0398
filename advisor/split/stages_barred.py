"""What can be said of a workflow that cannot be placed before any search: the stage or the hand-over that has no way."""

from advisor.split.stages_model import Model
from advisor.split.stages_words import StagesProblem


def barred_by_words(problem: StagesProblem, model: Model) -> str:
    """Return why nothing fits, or nothing where the search must tell.

    Args:
        problem: as it was given.
        model: the same by number.
    """
    for stage, options in zip(problem.stages, model.options, strict=True):
        if not options:
            return f"{stage.name} can run on no pool{_reasons(problem, stage.name)}"
    for edge, matrix in zip(problem.edges, model.fast, strict=True):
        if not matrix:
            return f"{edge.source} cannot hand over to {edge.target}: {_no_way(problem, edge.source, edge.target)}"
    return ""


def _reasons(problem: StagesProblem, name: str) -> str:
    """Return the reason of each pool in brackets."""
    stage = next(one for one in problem.stages if one.name == name)
    given = {option.pool: option for option in stage.options}
    said: list[str] = []
    for pool in problem.pools:
        option = given.get(pool.name)
        if option is None:
            said.append(f"{pool.name}: not among its pools")
        elif option.seconds is None:
            said.append(f"{pool.name}: {option.missing or 'no reason given'}")
        else:
            said.append(f"{pool.name}: its {'power' if problem.objective == 'energy' else 'price'} is not known")
    return f" ({'; '.join(said)})"


def _no_way(problem: StagesProblem, source: str, target: str) -> str:
    """Return what keeps two stages apart: forms that do not fit, or pools without a way between them."""
    of = {stage.name: [option for option in stage.options if option.seconds is not None] for stage in problem.stages}
    known = {(one.source, one.target) for one in problem.conversions}
    pairs = [(one.writes, other.reads) for one in of[source] for other in of[target]]
    apart = sorted({pair for pair in pairs if all(pair) and pair[0] != pair[1] and pair not in known})
    if len(apart) > 0 and all(pair in apart for pair in pairs):
        return f"no conversion from {apart[0][0]} to {apart[0][1]} is listed"
    return "no network or store joins their pools" + (f", or none converts {apart[0][0]} to {apart[0][1]}" if apart else "")
