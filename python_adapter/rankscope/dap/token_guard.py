"""A DAP connection over TCP must show the hub's token before anything else is heard.

Whoever can open a loopback port is not thereby the person; a Unix socket has its folder's rights instead.
"""

from __future__ import annotations

import hmac
from typing import Any

from rankscope.errors import UserError

_BEFORE = ("do_initialize", "do_disconnect")
_WITH_TOKEN = ("do_launch", "do_attach")


class TokenGuard:
    """Stands before a front as the channel's handler; passes everything on once ``token`` was shown."""

    def __init__(self, front: object, token: str) -> None:
        self._front = front
        self._token = token
        self._is_trusted = False

    def __getattr__(self, name: str) -> Any:
        if self._is_trusted or name in _BEFORE or not name.startswith("do_"):
            return getattr(self._front, name)
        return self._with_token(name) if name in _WITH_TOKEN else _refuse

    def _with_token(self, name: str) -> Any:
        async def check(arguments: dict[str, Any]) -> Any:
            shown = str(arguments.pop("token", "")).encode()
            if not hmac.compare_digest(shown, self._token.encode()):
                await _refuse(arguments)
            self._is_trusted = True
            return await getattr(self._front, name)(arguments)

        return check


async def _refuse(_arguments: dict[str, Any]) -> None:
    raise UserError("bad-token", "This connection has not shown the hub's token.", "Give it as 'token' in launch.json.")
