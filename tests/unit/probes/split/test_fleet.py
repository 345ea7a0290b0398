"""Sides on a Ray cluster: a real head on this host, asked for its token, with everything that it started ended again."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import grpc
import psutil
import pytest
from filelock import FileLock, Timeout

from core.errors import BadInput, Cancelled
from probes.split.far import LEASES
from probes.split.fleet import check_head, own_address, relay_environment
from probes.split.handle import SideLost
from probes.split.run import run, verify
from probes.split.session import SplitSession
from probes.split.words import LinkSpec, Ran, Reach, SideSpec, SplitFailure
from tests.here import RAY
from tests.unit.probes.split.ray_head import TOKEN, ray_head

GRPC = LinkSpec(transport="grpc")
ENDED_S = 20.0

needs_ray = pytest.mark.skipif(RAY is None, reason="no environment of Ray: ./tandem runtimes install ray")


@pytest.fixture(scope="module")
def head():
    with ray_head("token") as addresses, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", TOKEN)
        yield addresses


@pytest.fixture
def here():
    return SideSpec("here", "torch-eager", "cpu", sys.executable)


@contextmanager
def grpc_server():
    """Answer every call with nothing, as an open head would."""

    class Anything(grpc.GenericRpcHandler):
        def service(self, _details):
            return grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")

    server = grpc.server(ThreadPoolExecutor(1), handlers=[Anything()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def _far(address, runtime="jax", kind="cpu", **needs):
    return SideSpec("far", runtime, kind, RAY, reach=Reach(address, **{"resource": "CPU", **needs}))


def _sides_alive():
    """Sides that this process or its cluster started, or that nobody looks after any more; other tests run at the same time."""
    mine = {child.pid for child in psutil.Process().children(recursive=True)}
    return {
        one.pid for one in psutil.process_iter(["cmdline", "ppid"])
        if "probes.split.side" in (one.info["cmdline"] or []) and (one.pid in mine or one.info["ppid"] == 1)
    }  # fmt: skip


def _is_held(path):
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def _gone(before):
    end = time.monotonic() + ENDED_S
    while _sides_alive() - before and time.monotonic() < end:
        time.sleep(0.1)
    return _sides_alive() <= before


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 1])
def test_a_side_on_a_node_and_a_side_here_do_the_steps_of_one_runtime(head, here, settings, tasks, place) -> None:
    before = _sides_alive()
    told = verify(tasks["data"], (_far(head[place]), here), settings, 0.5, GRPC)
    if isinstance(told, SplitFailure) and "Starting Ray client server failed" in told.error:  # Ray's own, on a loaded machine
        told = verify(tasks["data"], (_far(head[place]), here), settings, 0.5, GRPC)
    assert isinstance(told, Ran), told
    assert told.holds
    assert len(told.checks) >= 4
    assert len(told.step_s) >= 5
    assert dict(told.versions[0])["jax"]
    assert dict(told.versions[1])["torch"]
    assert _gone(before)


@needs_ray
@pytest.mark.slow
def test_a_side_that_is_killed_on_its_node_ends_the_run_with_what_was_measured(head, here, settings, tasks) -> None:
    before = _sides_alive()
    far = replace(_far(head[0]), name="far side")

    def strike():
        if len(session.steps[0]) < 5:
            return False
        for pid in _sides_alive() - before - {handle.process.pid for handle in session._handles}:
            psutil.Process(pid).kill()
        return False

    with SplitSession((here, far), settings, should_stop=strike) as session:
        session.open(GRPC)
        with pytest.raises(SideLost) as caught:
            run(session, tasks["data"], 60.0)
        told = session.failure(caught.value)
    assert (told.stage, told.side, told.exit_code) == ("steps", "far side", -9)
    assert "side far side was killed (SIGKILL)" in told.error
    assert len(told.step_s) >= 3
    assert _gone(before)


@needs_ray
@pytest.mark.slow
def test_a_relay_that_is_killed_takes_its_side_along(head, here, settings, tasks) -> None:
    before = _sides_alive()

    def strike():
        if len(session.steps[0]) >= 5:
            session._handles[1].process.kill()
        return False

    with SplitSession((here, _far(head[0])), settings, should_stop=strike) as session:
        session.open(GRPC)
        with pytest.raises(SideLost, match="far"):
            run(session, tasks["data"], 60.0)
    assert _gone(before)


@needs_ray
@pytest.mark.slow
def test_a_run_that_is_cancelled_gives_the_cores_of_the_node_back(head, here, settings, tasks) -> None:
    before = _sides_alive()
    with SplitSession((here, _far(head[0], amount=2)), settings, should_stop=lambda: len(session.steps[0]) > 5) as session:
        session.open(GRPC)
        assert sum(map(_is_held, LEASES.glob("core-*.lock"))) >= 2
        with pytest.raises(Cancelled):
            run(session, tasks["data"], 60.0)
    assert _gone(before)
    assert not any(map(_is_held, LEASES.glob("core-*.lock")))


@needs_ray
@pytest.mark.slow
def test_a_chip_that_the_node_only_claims_to_have_is_no_chip(head, here, settings, tasks) -> None:
    told = verify(tasks["data"], (_far(head[0], kind="tpu", resource="TPU"), here), settings, 0.2, GRPC)
    assert isinstance(told, SplitFailure)
    assert (told.stage, told.side) == ("open", "far")
    assert "tpu" in told.error


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize("needs", [{"resource": "GPU"}, {"resource": "TPU", "amount": 3}, {"resource": "TPU", "model": "V6E"}])
def test_what_the_cluster_does_not_have_is_said_at_once(head, here, settings, tasks, needs) -> None:
    told = verify(tasks["data"], (_far(head[0], **needs), here), settings, 0.2, GRPC)
    assert isinstance(told, SplitFailure)
    assert (told.stage, told.side) == ("open", "far")
    assert told.error.startswith("got a cluster without ")
    assert "2 CPU, 2 TPU" in told.error


@needs_ray
@pytest.mark.slow
def test_a_head_is_trusted_by_its_token(head) -> None:
    for address in head:
        check_head(address, {"RAY_AUTH_TOKEN": TOKEN})
        with pytest.raises(BadInput, match=r"a token that .* does not know"):
            check_head(address, {"RAY_AUTH_TOKEN": "f" * 32})
        with pytest.raises(BadInput, match="no token"):
            check_head(address, {})


@needs_ray
@pytest.mark.slow
def test_the_token_may_lie_in_a_file(head, tmp_path) -> None:
    kept = tmp_path / ".ray" / "auth_token"
    kept.parent.mkdir()
    kept.write_text(f"{TOKEN}\n")
    check_head(head[0], {"HOME": str(tmp_path)})
    check_head(head[0], {"RAY_AUTH_TOKEN_PATH": str(kept)})


@needs_ray
@pytest.mark.slow
def test_a_head_that_asks_nobody_is_refused() -> None:
    with ray_head("disabled") as addresses:
        for address in addresses:
            with pytest.raises(BadInput, match="asks nobody for a token"):
                check_head(address, {"RAY_AUTH_TOKEN": TOKEN})


@needs_ray
@pytest.mark.slow
def test_the_port_of_clients_and_that_of_nodes_are_told_apart(head) -> None:
    node, client = head[0], head[1].removeprefix("ray://")
    for address in (client, f"ray://{node}"):
        with pytest.raises(BadInput, match="that no Ray head gives there"):
            check_head(address, {"RAY_AUTH_TOKEN": TOKEN})


def test_who_only_plays_a_head_is_none() -> None:
    """A server that asks for a token and knows no call of Ray."""
    seen = []

    class Anything(grpc.GenericRpcHandler):
        def service(self, details):
            known = dict(details.invocation_metadata).get("authorization", "")
            seen.append(known)

            def answer(_request, context):
                context.abort(grpc.StatusCode.UNIMPLEMENTED if known else grpc.StatusCode.UNAUTHENTICATED, "no")

            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.server(ThreadPoolExecutor(1), handlers=[Anything()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with pytest.raises(BadInput, match="that no Ray head gives there"):
            check_head(f"127.0.0.1:{port}", {"RAY_AUTH_TOKEN": TOKEN})
    finally:
        server.stop(None).wait()
    assert seen == ["", f"Bearer {TOKEN}"]


@pytest.mark.parametrize("token", ["a\nb", "töken", "a\x01b", "a b", "x" * 5000])
def test_a_token_that_is_none_is_shown_to_nobody(token) -> None:
    with pytest.raises(BadInput, match="visible ASCII") as caught:
        check_head("127.0.0.1:9", {"RAY_AUTH_TOKEN": token})
    assert token not in str(caught.value)


@pytest.mark.parametrize("missing", ["RAY_TLS_CA_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_SERVER_CERT"])
def test_encryption_without_a_certificate_is_refused(tmp_path, missing) -> None:
    kept = tmp_path / "some.pem"
    kept.write_text("some")
    names = {"RAY_TLS_CA_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_SERVER_CERT"} - {missing}
    with pytest.raises(BadInput, match=missing):
        check_head("127.0.0.1:9", {"RAY_USE_TLS": "1", **dict.fromkeys(names, str(kept))})


def test_a_proxy_is_not_asked_for_the_way_to_the_head(monkeypatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with grpc_server() as address, pytest.raises(BadInput, match="asks nobody for a token"):
        check_head(address, {"RAY_AUTH_TOKEN": TOKEN})


def test_what_stands_before_the_host_is_not_repeated() -> None:
    with pytest.raises(BadInput) as caught:
        check_head("user:secret@head:1", {})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["", "head", "head:", "head:0", "head:99999", "http://head:1", "ray://", "a b:1", "-x:1", "head:1/x"]
)
def test_an_address_that_is_none_is_refused(address) -> None:
    with pytest.raises(BadInput, match="HOST:PORT of a Ray head"):
        check_head(address, {})


def test_a_head_that_does_not_answer_is_refused() -> None:
    with pytest.raises(BadInput, match=r"no answer from 127\.0\.0\.1:9"):
        check_head("127.0.0.1:9", {"RAY_AUTH_TOKEN": TOKEN})


def test_own_address_is_that_towards_the_head() -> None:
    assert own_address("127.0.0.1:6379") == "127.0.0.1"
    assert own_address("ray://127.0.0.1:10001") == "127.0.0.1"


def test_a_relay_gets_the_token_and_no_secret_of_others() -> None:
    told = relay_environment({"RAY_AUTH_TOKEN": TOKEN, "AWS_SECRET_ACCESS_KEY": "x", "PATH": os.defpath}, "run-1")
    assert (told["RAY_AUTH_TOKEN"], told["RAY_AUTH_MODE"], told["TANDEM_RUN_ID"]) == (TOKEN, "token", "run-1")
    assert "AWS_SECRET_ACCESS_KEY" not in told
