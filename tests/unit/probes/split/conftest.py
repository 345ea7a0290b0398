import os
import sys

import pytest

from core.settings import Settings
from probes.split.session import SplitSession
from probes.split.words import LinkSpec, SideSpec, SplitTask


def tower(*widths, first=False):
    sizes = (("activation", "relu"), ("batch", 1), ("first", int(first)), ("last_activation", "relu"), ("widths", widths))
    return ("dense_tower", sizes, 1)


LAYERS = (
    tower(16, 32, 24, first=True),
    tower(24, 24),
    ("class_head", (("batch", 1), ("classes", 5), ("inputs", 24), ("loss", "cross_entropy")), 1),
)
TASKS = {
    "data": SplitTask("data", LAYERS, 12, rows=(5, 7), most=(2, 0)),
    "local": SplitTask("local", LAYERS, 12, rows=(5, 7), inner_steps=(3, 2), optimizer="momentum"),
    "pipeline": SplitTask("pipeline", LAYERS, 12, cut=1, micro_batches=4),
    "operators": SplitTask("operators", LAYERS, 12, cut=1),
    "ahead": SplitTask("operators", LAYERS, 12, cut=2, ahead=1, optimizer="momentum"),
    "rl": SplitTask("rl", LAYERS, 12, push_every=2, ahead=1),
}
CORES = sorted(os.sched_getaffinity(0))


def numpy_side(name, core=0):
    models = "tests.unit.probes.split.numpy_models"
    return SideSpec(name, "none", "cpu", sys.executable, cores=(CORES[core % len(CORES)],), models=models)


@pytest.fixture(scope="session")
def sides():
    return numpy_side("one"), numpy_side("other", 1)


@pytest.fixture(scope="session")
def layers():
    return LAYERS


@pytest.fixture(scope="session")
def tasks():
    return TASKS


@pytest.fixture(scope="session")
def settings(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    return Settings(home, "", "", leases=home / "leases")


@pytest.fixture(scope="session")
def session(sides, settings):
    with SplitSession(sides, settings) as session:
        session.open(LinkSpec())
        yield session
