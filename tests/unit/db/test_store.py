"""What the store keeps, it gives back; what it was told to hold, it holds."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from core.errors import BadInput, NotFound
from core.probe import STAGES, Measurement, Outcome, Probe, ProbeFailure, Timing
from core.run import FINAL_STATES, Actual, Identity, Progress, Run
from db import Store
from tests.samples.parts import sample_device
from tests.samples.runs import sample_hostile, sample_run, sample_running

Add = Callable[..., Run]
WHO = Identity("here", "boot", 42, 4242)
finite = st.floats(allow_nan=False, allow_infinity=False)
short = st.text(max_size=30)
pairs = st.lists(st.tuples(short, short), max_size=3).map(tuple)
sizes = st.lists(st.tuples(short, st.integers() | finite | short | st.lists(st.integers(), min_size=1, max_size=3).map(tuple)),
                 max_size=4).map(tuple)
probes = st.builds(Probe, short, st.sampled_from(["block", "kernel", "model"]), sizes, short, short, short, seed=st.integers())
nanoseconds = st.lists(st.integers(0, 2**62), max_size=20).map(tuple)
timings = st.builds(Timing, st.integers(0, 9), st.integers(1, 99), nanoseconds, nanoseconds, st.none() | finite)
measurements = st.builds(
    Measurement, probes, st.lists(timings, max_size=3).map(tuple), short, st.integers(0), st.integers(0),
    st.none() | st.integers(0), st.lists(short, max_size=3).map(tuple), st.booleans(), pairs, short, short)
failures = st.builds(ProbeFailure, probes, st.sampled_from(STAGES), short, st.none() | st.integers(), short, short)


def measured(**fields: object) -> Measurement:
    first = next(outcome for outcome in sample_run().outcomes if isinstance(outcome, Measurement))
    return replace(first, **fields)


def test_a_whole_run_comes_back_equal(store: Store) -> None:
    run = sample_run()
    store.create_run(run)
    assert store.run(run.id) == run


def test_a_run_full_of_markup_comes_back_equal(store: Store) -> None:
    run = sample_hostile()
    store.create_run(run)
    assert store.run(run.id) == run


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(outcome=measurements | failures)
def test_any_outcome_comes_back_equal_with_every_raw_sample(store: Store, add_run: Add, outcome: Outcome) -> None:
    store.delete_run("0123456789ab")
    add_run()
    store.save_outcome("0123456789ab", outcome)
    assert store.run("0123456789ab").outcomes == (outcome,)


def test_outcomes_keep_the_order_in_which_they_were_saved(store: Store, add_run: Add) -> None:
    run = add_run()
    wanted = sample_run().outcomes
    assert [store.save_outcome(run.id, outcome) for outcome in wanted] == list(range(len(wanted)))
    assert store.run(run.id).outcomes == wanted
    assert store.recent_outcomes(run.id, 3) == wanted[-3:]


def test_an_outcome_that_is_saved_twice_is_kept_once(store: Store, add_run: Add) -> None:
    run = add_run()
    assert store.save_outcome(run.id, measured()) == 0
    assert store.save_outcome(run.id, measured(taken_at="later")) == 1
    assert store.save_outcome(run.id, measured()) == 0
    assert len(store.run(run.id).outcomes) == 2


def test_a_run_that_is_created_twice_is_kept_as_it_was_first(store: Store, add_run: Add) -> None:
    add_run(note="first")
    add_run(note="second")
    assert store.run("0123456789ab").note == "first"


@pytest.mark.parametrize("call", [
    lambda s: s.run("x"), lambda s: s.progress("x"), lambda s: s.save_outcome("x", measured()), lambda s: s.set_note("x", ""),
    lambda s: s.ask_cancel("x"), lambda s: s.cancel_asked("x"), lambda s: s.set_state("x", "running"),
    lambda s: s.finish("x", "done", None), lambda s: s.add_actual(Actual("x", "jax", "cpu:0", 1.0, "now")),
    lambda s: s.save_facts("x", (), ()),
])
def test_a_run_that_does_not_exist_is_named_in_one_line(store: Store, call: Callable[[Store], object]) -> None:
    with pytest.raises(NotFound, match="run 'x'"):
        call(store)


def test_devices_and_versions_that_the_run_found_are_kept(store: Store, add_run: Add) -> None:
    run = add_run(devices=(), versions=())
    store.save_facts(run.id, (sample_device(),), (("jax", "0.10.2"),))
    again = store.run(run.id)
    assert (again.devices, again.versions) == ((sample_device(),), (("jax", "0.10.2"),))


def test_a_heartbeat_carries_progress_and_process(store: Store, add_run: Add) -> None:
    run = add_run()
    assert store.progress(run.id)[:3] == ("queued", Progress("queued"), None)
    progress = Progress("measuring", 3, 9, "now", "before", 1.5, None, 2)
    assert store.beat(run.id, progress, WHO) is False
    state, found, who, age_s = store.progress(run.id)
    assert (state, found, who) == ("queued", progress, WHO)
    assert 0 <= age_s < 60


def test_a_cancel_is_seen_at_the_next_heartbeat(store: Store, add_run: Add) -> None:
    run = add_run()
    assert store.cancel_asked(run.id) is False
    store.ask_cancel(run.id)
    assert store.cancel_asked(run.id) is True
    assert store.beat(run.id, Progress("measuring"), WHO) is True


def test_asking_to_cancel_again_does_not_make_the_first_asking_younger(store: Store, add_run: Add) -> None:
    run = add_run()
    store.ask_cancel(run.id)
    store._engines.write(lambda c: c.execute(text("UPDATE runs SET cancel_asked_at_s = cancel_asked_at_s - 100")))
    store.ask_cancel(run.id)
    assert (store.pulse(run.id).cancel_age_s or 0) >= 100


@pytest.mark.parametrize("state", FINAL_STATES)
def test_a_finished_run_cannot_be_changed_by_a_process_that_wakes_late(store: Store, add_run: Add, state: str) -> None:
    run = add_run()
    assert store.finish(run.id, state, None, "why") is True
    assert store.beat(run.id, Progress("measuring", 5, 9), WHO) is True
    assert store.set_state(run.id, "running") is False
    assert store.finish(run.id, "done", sample_run().recommendation) is False
    again = store.run(run.id)
    assert (again.state, again.error, again.progress, again.recommendation) == (state, "why", run.progress, None)
    assert again.finished_at is not None


def test_what_a_late_process_measured_is_still_kept(store: Store, add_run: Add) -> None:
    run = add_run()
    store.set_state(run.id, "interrupted", "gone")
    store.save_outcome(run.id, measured())
    assert store.run(run.id).outcomes == (measured(),)


def test_a_deleted_run_tells_its_process_to_stop(store: Store, add_run: Add) -> None:
    run = add_run()
    store.delete_run(run.id)
    assert store.beat(run.id, Progress("measuring"), WHO) is True


@pytest.mark.parametrize(("call", "word"), [
    (lambda s: s.set_state("0123456789ab", "asleep"), "asleep"), (lambda s: s.finish("0123456789ab", "running", None), "running"),
])
def test_a_state_that_does_not_exist_is_refused(store: Store, add_run: Add, call: Callable[[Store], object], word: str) -> None:
    add_run()
    with pytest.raises(BadInput, match=word):
        call(store)


@pytest.mark.parametrize("change", [
    "UPDATE runs SET state = 'asleep'", "UPDATE runs SET state = 'done'", "UPDATE runs SET finished_at = 'now'",
    "UPDATE runs SET process_pid = 5", "UPDATE outcomes SET trusted = 1, ok = 0", "UPDATE outcomes SET run_id = 'x'",
    ("INSERT INTO outcomes SELECT 99, run_id, sequence, 'other', probe_key, subject, runtime, device_uuid, ok, trusted, "
     "taken_at, outcome FROM outcomes"),
])
def test_the_database_itself_refuses_what_must_not_be(store: Store, add_run: Add, change: str) -> None:
    run = add_run()
    store.save_outcome(run.id, measured())
    with pytest.raises(IntegrityError):
        store._engines.write(lambda c: c.execute(text(change)))


def test_the_history_shows_the_newest_first_with_what_was_advised(store: Store, add_run: Add) -> None:
    add_run("a" * 12, created_at="2026-01-01T00:00:00+00:00")
    add_run("b" * 12, created_at="2026-01-02T00:00:00+00:00")
    recommendation = sample_run().recommendation
    assert recommendation is not None
    assert recommendation.best is not None
    assert recommendation.best.step_time_s is not None
    store.finish("a" * 12, "done", recommendation)
    newest, oldest = store.history()
    assert (newest.id, newest.best, newest.step_time_s) == ("b" * 12, "", None)
    assert (oldest.best, oldest.step_time_s) == (recommendation.best.candidate.label, recommendation.best.step_time_s.mid)


@pytest.mark.parametrize(("search", "found"), [
    ("100%", ["a"]), ("50_50", ["b"]), ("support TICKETS", ["b", "a"]), ("%", ["a"]), ("  ", ["b", "a"]), ("aaaaaa", ["a"]),
    ("zebra", []),
])
def test_the_search_takes_every_character_literally_and_ignores_case(
        store: Store, add_run: Add, search: str, found: list[str]) -> None:
    add_run("a" * 12, created_at="2026-01-01", note="100% sure")
    add_run("b" * 12, created_at="2026-01-02", note="a 50_50 call")
    assert [summary.id[0] for summary in store.history(search)] == found
    assert store.count(search) == len(found)


def test_the_history_is_narrowed_by_task_state_and_owner_and_cut_into_pages(store: Store, add_run: Add) -> None:
    for number in range(5):
        add_run(f"{number:012d}", created_at=f"2026-01-0{number + 1}", owner="ann" if number % 2 else "ben")
    store.set_state("0" * 12, "running")
    assert [run.id[-1] for run in store.history(owner="ann")] == ["3", "1"]
    assert [run.id[-1] for run in store.history(state="running")] == ["0"]
    assert store.history(task="serve") == ()
    assert [run.id[-1] for run in store.history(limit=2, offset=1)] == ["3", "2"]
    assert store.count(owner="ben", state="queued") == 2


def test_deleting_a_run_removes_its_outcomes_and_actuals_and_no_other(store: Store) -> None:
    gone, stays = sample_run(), replace(sample_run(), id="stays", actuals=())
    store.create_run(gone)
    store.create_run(stays)
    store.delete_run(gone.id)
    assert store.run("stays") == stays
    query = text("SELECT DISTINCT run_id FROM outcomes UNION SELECT run_id FROM actuals")
    left = store._engines.read(lambda c: c.execute(query).all())
    assert left == [("stays",)]


def test_measurements_are_the_newest_of_each_probe_on_the_devices_asked_for(store: Store, add_run: Add) -> None:
    add_run("a" * 12)
    add_run("b" * 12)
    newest = measured(taken_at="2026-02-01")
    other_device, other_probe = measured(device_uuid="other"), measured(probe=replace(measured().probe, seed=7))
    for run_id, outcome in (("b", newest), ("a", measured(taken_at="2026-01-01")), ("a", other_device), ("a", other_probe)):
        store.save_outcome(run_id * 12, outcome)
    store.save_outcome("a" * 12, ProbeFailure(measured().probe, "lost", "gone", -9, "", "2026-03-01"))
    assert set(store.measurements((newest.device_uuid,))) == {newest, other_probe}
    assert store.measurements(("other",)) == (other_device,)
    assert store.measurements(()) == ()


def test_a_quarantined_measurement_does_not_hide_a_trusted_one(store: Store, add_run: Add) -> None:
    run = add_run()
    trusted, doubted = measured(taken_at="2026-01-01"), measured(taken_at="2026-02-01", trusted=False)
    store.save_outcome(run.id, trusted)
    store.save_outcome(run.id, doubted)
    assert store.measurements((trusted.device_uuid,)) == (trusted,)


def test_an_actual_is_kept_once_and_comes_back_with_its_run(store: Store, add_run: Add) -> None:
    run = add_run()
    actual = Actual(run.id, "jax", "cpu:0", 1.25, "2026-01-01", "by hand")
    store.add_actual(actual)
    store.add_actual(actual)
    assert store.run(run.id).actuals == (actual,)


def test_unfinished_runs_are_listed_with_their_process(store: Store, add_run: Add) -> None:
    add_run("a" * 12, created_at="2026-01-01")
    add_run("b" * 12, created_at="2026-01-02")
    add_run("c" * 12, created_at="2026-01-03")
    store.beat("b" * 12, Progress("measuring"), WHO)
    store.finish("c" * 12, "done", None)
    assert [(run_id, who) for run_id, who, _ in store.unfinished()] == [("a" * 12, None), ("b" * 12, WHO)]


def test_a_named_process_gives_way_to_one_that_has_spoken_for_itself(store: Store, add_run: Add) -> None:
    run = add_run()
    store.name_process(run.id, replace(WHO, pid=1))
    assert store.pulse(run.id).identity == replace(WHO, pid=1)
    store.beat(run.id, Progress("measuring"), WHO)
    store.name_process(run.id, replace(WHO, pid=1))
    assert store.pulse(run.id).identity == WHO


def test_a_pulse_counts_the_answers_that_are_kept(store: Store) -> None:
    run = sample_running()
    store.create_run(run)
    pulse = store.pulse(run.id)
    assert (pulse.answered, pulse.progress, pulse.cancel_age_s) == (len(run.outcomes), run.progress, None)
