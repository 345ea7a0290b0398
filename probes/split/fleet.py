"""A Ray cluster from where a run is coordinated: asked for its token before it is trusted, told apart from other hosts.

Ray runs what it is given by whoever reaches its head. So a head that asks nobody for a token is refused: a run would spend the
cluster's accelerators on a machine that is anybody's. The token is Ray's own, by variable or file, and never on a command line.
"""

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from core.errors import BadInput
from probes.environment import ROOT

ADDRESS = "TANDEM_RAY_ADDRESS"
TOKEN, TOKEN_FILE = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
ANSWER_S = 10.0
_CLIENT = "ray://"
_ADDRESS = re.compile(r"(?:ray://)?(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,253}):(?P<port>\d{1,5})")
_ASK = {False: "/ray.rpc.NodeInfoGcsService/CheckAlive", True: "/ray.rpc.RayletDriver/ClusterInfo"}
"""A call that changes nothing, of the head itself and of its port for drivers outside the cluster."""
_KEPT = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")


def check_head(address: str, environ: Mapping[str, str]) -> None:
    """Refuse a head that is not there, that is open to anybody, or that does not know our token.

    Args:
        address: HOST:PORT of the head from one of its nodes, or ray://HOST:PORT from elsewhere.
        environ: variables as in `os.environ`; those of Ray name the token.

    Raises:
        BadInput: one of these, or no address.
    """
    place = _place(address)
    if environ.get("RAY_USE_TLS") == "1":
        return  # both ends then show certificates, which Ray checks
    bare = _code(place, address, ())
    if bare in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        raise BadInput(f"no answer from {address}", "the head of a Ray cluster", f"correct {ADDRESS}, or start the cluster")
    if bare != "UNAUTHENTICATED":
        raise BadInput(
            f"a Ray head at {address} that asks nobody for a token", "one that does: whoever reaches it runs what he likes",
            "start the cluster with RAY_AUTH_MODE=token",
        )
    token = _token(environ)
    if not token:
        raise BadInput(f"no token for {address}", "that of the cluster", f"set {TOKEN_FILE} to a file that holds it, or {TOKEN}")
    if _code(place, address, (("authorization", f"Bearer {token}"),)) == "UNAUTHENTICATED":
        raise BadInput(f"a token that {address} does not know", "that of the cluster", f"correct {TOKEN_FILE} or {TOKEN}")


def own_address(address: str) -> str:
    """Return the address of this host on the way to the head, by which others of its network reach it.

    Args:
        address: of the head.
    """
    host, _, port = _place(address).rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:  # nothing is sent
        try:
            towards.connect((host, int(port)))
        except OSError as error:
            raise BadInput(f"no way to {host}: {error.strerror}", "a host of this network", f"correct {ADDRESS}") from None
        return str(towards.getsockname()[0])


def relay_environment(inherited: Mapping[str, str], run_id: str) -> dict[str, str]:
    """Return the whole environment of a relay: what Ray needs, and nothing of a framework.

    Args:
        inherited: the coordinator's own.
        run_id: marks the process.
    """
    result = {name: inherited[name] for name in _KEPT if name in inherited}
    result |= {name: value for name, value in inherited.items() if name.startswith(("RAY_AUTH_", "RAY_TLS_", "RAY_USE_TLS"))}
    result |= {
        "RAY_AUTH_MODE": "token", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0",
    }  # fmt: skip
    return result | ({"TANDEM_RUN_ID": run_id} if run_id else {})


def _place(address: str) -> str:
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) < 2**16:
        got = f"{ADDRESS}={address[:80]}" if address else f"no {ADDRESS}"
        raise BadInput(got, "HOST:PORT of a Ray head, or ray://HOST:PORT from outside of the cluster", f"set {ADDRESS}")
    return f"{found['host']}:{found['port']}"


def _token(environ: Mapping[str, str]) -> str:
    """Return the token as Ray looks for it: the variable, then the file that is named, then that of the home directory."""
    if environ.get(TOKEN):
        return environ[TOKEN].strip()
    named = environ.get(TOKEN_FILE)
    path = Path(named) if named else Path(environ.get("HOME") or os.sep) / ".ray" / "auth_token"
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def _code(place: str, address: str, metadata: tuple[tuple[str, str], ...]) -> str:
    """Return the name of the status that the head answers with."""
    import grpc

    with grpc.insecure_channel(place) as channel:
        ask = cast("Any", channel).unary_unary(_ASK[address.startswith(_CLIENT)])
        try:
            ask(b"", timeout=ANSWER_S, metadata=metadata)
        except grpc.RpcError as error:
            return str(cast("Any", error).code().name)
    return "OK"
