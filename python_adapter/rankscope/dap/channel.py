"""One DAP connection, either end of it.

Requests are handed to a handler object by name: ``setBreakpoints`` calls its
``do_set_breakpoints(arguments)``, ``rankscope/ranks`` its ``do_rankscope_ranks``.
Events go to its ``on_event(name, body)`` where it has one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rankscope.dap.framing import FramingError, Parser, encode
from rankscope.dap.messages import DapError, error_body, failure_of
from rankscope.errors import UserError

_log = logging.getLogger("rankscope.dap")
_CHUNK = 1 << 16
_MAX_UNSENT = 256 << 20
_CLOSE_SECONDS = 1.0


class Channel:
    """Owns its reader task's requests and the writer; :meth:`serve` returns when the peer or :meth:`close` ends it.

    ``closed`` is done then. Requests of the peer run concurrently, started in their order.
    ``error_link`` is added to every error that we answer with.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.error_link: Mapping[str, str] = {}
        self._reader = reader
        self._writer = writer
        self._seq = 0
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._serving: dict[int, asyncio.Task[None]] = {}

    # --- what we send -----------------------------------------------------------------------------

    async def request(
        self, command: str, arguments: dict[str, Any] | None = None, timeout: float = 10.0
    ) -> dict[str, Any]:
        """The body of the answer. Raises :class:`DapError`, or ``TimeoutError`` after ``timeout`` seconds."""
        if self.closed.done():
            raise DapError(f"'{command}' cannot be sent: {self.closed.result()}")
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        seq = self._send({"type": "request", "command": command, "arguments": arguments or {}}, future)
        try:
            response = await asyncio.wait_for(future, timeout)
        except (asyncio.TimeoutError, TimeoutError) as e:
            raise TimeoutError(f"'{command}' was not answered within {timeout:g} s") from e
        finally:
            self._pending.pop(seq, None)
        if not response.get("success"):
            raise failure_of(response)
        return response.get("body") or {}

    def send_event(self, event: str, body: dict[str, Any] | None = None) -> None:
        """Say something; nothing when the connection is closed."""
        self._send({"type": "event", "event": event, "body": body or {}})

    def _send(self, message: dict[str, Any], answer: asyncio.Future[dict[str, Any]] | None = None) -> int:
        self._seq += 1
        if answer is not None:
            self._pending[self._seq] = answer
        if not self.closed.done() and not self._writer.is_closing():
            try:
                self._writer.write(encode({"seq": self._seq, **message}))
            except (OSError, RuntimeError) as e:
                self._end(str(e))
            else:
                if self._writer.transport.get_write_buffer_size() > _MAX_UNSENT:
                    self._end("the other end takes nothing in")
        return self._seq

    # --- what we get ------------------------------------------------------------------------------

    async def serve(self, handler: object) -> None:
        """Read until the connection ends. Never raises for what the peer does."""
        parser = Parser()
        why = "the connection was closed"
        try:
            while not self.closed.done() and (data := await self._reader.read(_CHUNK)):
                for message in parser.feed(data):
                    self._take(handler, message)
        except FramingError as e:
            why = f"the other end sent {e}"
            _log.warning("DAP connection closed: %s", why)
        except OSError as e:
            why = str(e)
        finally:
            self._end(why)
            for task in list(self._serving.values()):
                task.cancel()
            await asyncio.gather(*self._serving.values(), return_exceptions=True)

    async def close(self) -> None:
        """Send what waits, within a second, and close."""
        with contextlib.suppress(OSError, asyncio.TimeoutError, TimeoutError):
            await asyncio.wait_for(self._writer.drain(), _CLOSE_SECONDS)
        self._end("the connection was closed")

    def _end(self, why: str) -> None:
        if self.closed.done():
            return
        self.closed.set_result(why)
        self._writer.close()
        for future in self._pending.values():
            if not future.done():
                future.set_exception(DapError(why))

    def _take(self, handler: object, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "request":
            seq = int(message.get("seq", 0))
            task = asyncio.ensure_future(self._answer(handler, message))
            self._serving[seq] = task
            task.add_done_callback(lambda _: self._serving.pop(seq, None))
        elif kind == "response":
            future = self._pending.get(message.get("request_seq", -1))
            if future is not None and not future.done():
                future.set_result(message)
        elif kind == "event":
            on_event = getattr(handler, "on_event", None)
            if on_event is not None:
                on_event(str(message.get("event")), message.get("body") or {})

    async def _answer(self, handler: object, request: dict[str, Any]) -> None:
        command = str(request.get("command"))
        arguments = request.get("arguments") or {}
        try:
            if command == "cancel" and arguments.get("progressId") is None:
                self._cancel(arguments)
                body: dict[str, Any] | None = {}
            else:
                body = await _method(handler, command)(arguments)
        except asyncio.CancelledError:
            self._respond(request, error=DapError("cancelled"))
        except (UserError, DapError) as e:
            self._respond(request, error=e)
        except (TimeoutError, asyncio.TimeoutError) as e:
            self._respond(request, error=DapError(str(e) or f"'{command}' took too long"))
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            _log.exception("'%s' failed", command)
            self._respond(request, error=DapError(f"'{command}' has arguments that cannot be read: {e!r}"))
        except Exception as e:  # a bug of ours must not take the connection down
            _log.exception("'%s' failed", command)
            self._respond(request, error=DapError(f"'{command}' failed inside RankScope: {e!r}"))
        else:
            self._respond(request, body=body)

    def _cancel(self, arguments: dict[str, Any]) -> None:
        task = self._serving.get(int(arguments.get("requestId") or 0))
        if task is not None:
            task.cancel()

    def _respond(
        self, request: dict[str, Any], body: dict[str, Any] | None = None, error: Exception | None = None
    ) -> None:
        message: dict[str, Any] = {
            "type": "response",
            "request_seq": request.get("seq"),
            "command": request.get("command"),
            "success": error is None,
        }
        if error is None:
            message["body"] = body or {}
        else:
            message["message"] = str(error)
            message["body"] = error_body(error, self.error_link)
        self._send(message)


def _method(handler: object, command: str) -> Callable[[dict[str, Any]], Awaitable[dict[str, Any] | None]]:
    method: Callable[[dict[str, Any]], Awaitable[dict[str, Any] | None]] | None = getattr(
        handler, method_name(command), None
    )
    if method is None:
        raise DapError(f"'{command}' is not supported")
    return method


def method_name(command: str) -> str:
    """``setBreakpoints`` → ``do_set_breakpoints``, ``rankscope/ranks`` → ``do_rankscope_ranks``."""
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", command).lower()
    return "do_" + re.sub(r"\W", "_", snake)
