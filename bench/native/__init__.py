"""Real whole models, written for each framework the way its own users write them: the truth that Tandem is held to.

Nothing here may import `probes`, `advisor` or `services`: a truth that shares code with the prediction proves nothing.
Each framework has `<framework>_models.py` (architectures) and `<framework>_steps.py` (one synchronised step); `cases.py`
holds the sizes, `run.py` times one case in one runtime in a process of its own.
"""
