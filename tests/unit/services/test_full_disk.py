"""A run that fails for want of room says so once there is room again."""

from core.errors import StoreError
from db import Store
from services.work import ROOM_TRIES, say_failed


class _Full(Store):
    """A store whose disk has no room for the first writes; everything else is real, and nothing else is used."""

    def __init__(self, full: int) -> None:
        self.full, self.kept = full, ""

    def finish(self, run_id: str, state: str, recommendation: object, error: str = "") -> bool:
        if self.full:
            self.full -= 1
            raise StoreError("database or disk is full")
        self.kept = f"{run_id} {state}: {error}"
        return True


def test_the_reason_is_kept_as_soon_as_there_is_room() -> None:
    store, paused = _Full(2), list[float]()
    assert say_failed(store, "run", "database or disk is full", paused.append)
    assert store.kept == "run failed: database or disk is full"
    assert len(paused) == 2


def test_a_disk_that_stays_full_leaves_the_last_word_to_the_sweep() -> None:
    store, paused = _Full(1000), list[float]()
    assert not say_failed(store, "run", "database or disk is full", paused.append)
    assert len(paused) == ROOM_TRIES
