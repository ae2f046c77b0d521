"""Mutual proof that both ends hold the job's secret, without sending it.

::

    agent -> hub    {version, job, nonce}
    hub   -> agent  {version, nonce, proof}     or {refused}
    agent -> hub    {proof}
    hub   -> agent  {ok}                        or {refused}

Each proof is HMAC-SHA256 over the prover's role, the job and both nonces, so that
neither side's answer can be sent back to it.
"""

from __future__ import annotations

import hmac
import os
from typing import Any

from rankscope.wire.messages import VERSION

NONCE_BYTES = 32


class Refused(Exception):
    """The other end is not who it should be; ``reason`` is fit to show."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _proof(secret: bytes, role: bytes, job: str, agent_nonce: bytes, hub_nonce: bytes) -> bytes:
    return hmac.digest(secret, b"\0".join((role, job.encode(), agent_nonce, hub_nonce)), "sha256")


def _bytes(raw: dict[str, Any], key: str) -> bytes:
    value = raw.get(key)
    if not isinstance(value, bytes):
        raise Refused(f"the handshake lacks '{key}'")
    return value


def _check_version(raw: dict[str, Any]) -> None:
    if raw.get("version") != VERSION:
        raise Refused(f"wire version {raw.get('version')!r}, this side speaks {VERSION}")


class AgentSide:
    """The agent's half: :meth:`open`, then :meth:`answer` to what the hub says."""

    def __init__(self, secret: bytes, job: str) -> None:
        self._secret = secret
        self._job = job
        self._nonce = os.urandom(NONCE_BYTES)

    def open(self) -> dict[str, Any]:
        """The first frame."""
        return {"version": VERSION, "job": self._job, "nonce": self._nonce}

    def answer(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Check the hub's proof and make ours. Raises :class:`Refused`."""
        if "refused" in raw:
            raise Refused(str(raw["refused"]))
        _check_version(raw)
        theirs = _bytes(raw, "nonce")
        if not hmac.compare_digest(_bytes(raw, "proof"), _proof(self._secret, b"hub", self._job, self._nonce, theirs)):
            raise Refused("the hub does not know this job's secret")
        return {"proof": _proof(self._secret, b"agent", self._job, self._nonce, theirs)}


class HubSide:
    """The hub's half: :meth:`challenge` on the first frame, :meth:`check` on the second."""

    def __init__(self, secret: bytes, job: str) -> None:
        self._secret = secret
        self._job = job
        self._nonce = os.urandom(NONCE_BYTES)
        self._theirs = b""

    def challenge(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Answer the agent's opening. Raises :class:`Refused` on a wrong version or job."""
        _check_version(raw)
        if raw.get("job") != self._job:
            raise Refused("it belongs to another job")
        self._theirs = _bytes(raw, "nonce")
        if len(self._theirs) != NONCE_BYTES:
            raise Refused("a nonce of the wrong length")
        return {
            "version": VERSION,
            "nonce": self._nonce,
            "proof": _proof(self._secret, b"hub", self._job, self._theirs, self._nonce),
        }

    def check(self, raw: dict[str, Any]) -> None:
        """Check the agent's proof. Raises :class:`Refused`."""
        if not hmac.compare_digest(
            _bytes(raw, "proof"), _proof(self._secret, b"agent", self._job, self._theirs, self._nonce)
        ):
            raise Refused("it does not know this job's secret")
