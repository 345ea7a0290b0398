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
_GOOD = {False: ("OK",), True: ("OK", "NOT_FOUND")}
"""What a head answers to whom it lets in; its port for drivers finds no question in an empty call."""
_TOKEN = re.compile(r"[!-~]{1,4096}")
_NO_PROXY = (("grpc.enable_http_proxy", 0),)
_KEPT = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")


def check_head(address: str, environ: Mapping[str, str]) -> None:
    """Refuse a head that is not there, that is open to anybody, that is none of Ray, or that does not know our token.

    Args:
        address: HOST:PORT of the head from one of its nodes, or ray://HOST:PORT from elsewhere.
        environ: variables as in `os.environ`; those of Ray name the token, and with `RAY_USE_TLS=1` the certificates.

    Raises:
        BadInput: one of these, or no address.
    """
    place, token = _place(address), _token(environ)
    if token and not _TOKEN.fullmatch(token):
        expected = f"that of {address}, on one line"
        raise BadInput("a token with other than visible ASCII", expected, f"correct {TOKEN_FILE} or {TOKEN}")
    encrypted = environ.get("RAY_USE_TLS") == "1"
    with _channel(place, _certificates(environ) if encrypted else None) as channel:
        bare = _code(channel, address, "")
        if bare in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
            raise BadInput(f"no answer from {address}", "the head of a Ray cluster", f"correct {ADDRESS}, or start the cluster")
        good = _GOOD[address.startswith(_CLIENT)]
        if bare in good and encrypted:
            return  # both ends have shown certificates
        if bare in good:
            raise BadInput(
                f"a Ray head at {address} that asks nobody for a token", "one that does: whoever reaches it runs what he likes",
                "start the cluster with RAY_AUTH_MODE=token",
            )
        if bare != "UNAUTHENTICATED":
            raise _no_head(address, bare)
        if not token:
            expected = f"set {TOKEN_FILE} to a file that holds it, or {TOKEN}"
            raise BadInput(f"no token for {address}", "that of the cluster", expected)
        known = _code(channel, address, token)
        if known == "UNAUTHENTICATED":
            raise BadInput(f"a token that {address} does not know", "that of the cluster", f"correct {_kept_in(environ)}")
        if known not in good:
            raise _no_head(address, known)


def _no_head(address: str, answer: str) -> BadInput:
    other = "without ray://" if address.startswith(_CLIENT) else "with ray:// for the port of clients"
    got = f"an answer from {address} that no Ray head gives there ({answer.lower()})"
    expected = "HOST:PORT of the head on its nodes, ray://HOST:PORT elsewhere"
    return BadInput(got, expected, f"correct {ADDRESS}: another port, or {other}")


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
        shown = address.rpartition("@")[2][:80]  # what stands before may be a secret
        got = f"{ADDRESS}={shown}" if address else f"no {ADDRESS}"
        raise BadInput(got, "HOST:PORT of a Ray head, or ray://HOST:PORT from outside of the cluster", f"set {ADDRESS}")
    return f"{found['host']}:{found['port']}"


def _token(environ: Mapping[str, str]) -> str:
    """Return the token as Ray looks for it: the variable, then the file that is named, then that of the home directory."""
    if environ.get(TOKEN):
        return environ[TOKEN].strip()
    try:
        return _file(environ).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def _file(environ: Mapping[str, str]) -> Path:
    named = environ.get(TOKEN_FILE)
    return Path(named) if named else Path(environ.get("HOME") or os.sep) / ".ray" / "auth_token"


def _kept_in(environ: Mapping[str, str]) -> str:
    """Return where the token came from, in words."""
    return TOKEN if environ.get(TOKEN) else f"the one in {_file(environ)}, or set {TOKEN_FILE}"


def _channel(place: str, certificates: tuple[bytes, bytes, bytes] | None) -> Any:
    """Return a channel to the head that no proxy sees.

    Args:
        place: HOST:PORT.
        certificates: root, own key and own chain; None for a channel in the clear.
    """
    import grpc

    if certificates is None:
        return grpc.insecure_channel(place, options=list(_NO_PROXY))
    return grpc.secure_channel(place, grpc.ssl_channel_credentials(*certificates), options=list(_NO_PROXY))


def _certificates(environ: Mapping[str, str]) -> tuple[bytes, bytes, bytes]:
    """Return root, key and chain as Ray's own variables name them.

    Raises:
        BadInput: one is not there.
    """
    found: list[bytes] = []
    for name in ("RAY_TLS_CA_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_SERVER_CERT"):
        try:
            found.append(Path(environ.get(name) or os.devnull).read_bytes())
        except OSError:
            found.append(b"")
        if not found[-1]:
            raise BadInput(f"RAY_USE_TLS=1 and no {name}", "a file in PEM that can be read", f"set {name}, or unset RAY_USE_TLS")
    return found[0], found[1], found[2]


def _code(channel: Any, address: str, token: str) -> str:
    """Return the name of the status that the head answers with.

    Args:
        channel: to it.
        address: tells which call the head knows.
        token: that is shown; empty for none.
    """
    import grpc

    try:
        metadata = (("authorization", f"Bearer {token}"),) if token else ()
        channel.unary_unary(_ASK[address.startswith(_CLIENT)])(b"", timeout=ANSWER_S, metadata=metadata)
    except grpc.RpcError as error:
        return str(cast("Any", error).code().name)
    return "OK"
