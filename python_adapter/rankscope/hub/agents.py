"""The hub's agent port: proves each connection, then hands its messages to the fleet."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from rankscope.hub import open_files
from rankscope.hub.fleet import Fleet
from rankscope.hub.member import Member
from rankscope.wire import frames, streams
from rankscope.wire import messages as m
from rankscope.wire.auth import HubSide, Refused
from rankscope.wire.link import Endpoint, LinkBroken

BACKLOG = 1024
_HANDSHAKE_SECONDS = 5.0
_CHUNK = 1 << 16


class AgentPort:
    """Listens for agents. Owns the server and its connections; :meth:`close` ends them.

    ``refused`` counts the connections that could not prove themselves.
    """

    def __init__(self, fleet: Fleet, endpoint: Endpoint) -> None:
        self.refused = 0
        self._fleet = fleet
        self._endpoint = endpoint
        self._room = open_files.room()
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self, sock: Any) -> None:
        """Serve on a bound socket."""
        self._server = await asyncio.start_server(self._accepted, sock=sock, backlog=BACKLOG)

    async def close(self) -> None:
        """End the listener and every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        if len(self._connections) == self._room:
            text = f"{self._room} processes have joined, no more can: the hub may not open more files (`ulimit -n`)"
            self._fleet.notice("error", text)
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            member = await asyncio.wait_for(self._prove(reader, writer), _HANDSHAKE_SECONDS)
        except (OSError, asyncio.IncompleteReadError):
            return
        except (Refused, frames.FrameError, LinkBroken, TypeError, TimeoutError, asyncio.TimeoutError) as e:
            reason = str(e) or f"no proof within {_HANDSHAKE_SECONDS:g} s"
            self.refused += 1
            self._fleet.notice("warning", f"refused a connection to the agent port ({self.refused} so far): {reason}")
            with contextlib.suppress(OSError):
                writer.write(frames.pack({"refused": reason}))
                await asyncio.wait_for(writer.drain(), 1)
            return
        why = ""
        try:
            parser = frames.FrameParser(frames.MAX_FRAME)
            while data := await reader.read(_CHUNK):
                parser.feed(data)
                while (frame := parser.next()) is not None:
                    self._one(member, frame)
        except OSError:
            pass
        except (frames.FrameError, LinkBroken, TypeError, ValueError) as e:
            why = str(e)
        finally:
            if member.unlinked(writer) and member.is_live:
                if why:
                    self._fleet.notice("error", f"its agent sent what cannot be read, link closed: {why}", member)
                self._fleet.unlinked(member)

    def _one(self, member: Member, frame: dict[str, Any]) -> None:
        raw = member.order.unwrap(frame)
        if raw is not None:
            message = m.decode(raw)
            if message is None:
                self._fleet.notice("warning", f"refused an unknown message '{raw.get('t')}'", member)
            else:
                self._fleet.handle(member, message)
        if member.order.owes_ack:
            member.heartbeat()

    async def _prove(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Member:
        side = HubSide(bytes.fromhex(self._endpoint.secret), self._endpoint.job)
        writer.write(frames.pack(side.challenge(await streams.read(reader, frames.MAX_HANDSHAKE_FRAME))))
        side.check(await streams.read(reader, frames.MAX_HANDSHAKE_FRAME))
        writer.write(frames.pack({"ok": True}))
        opening = await streams.read(reader)
        hello = m.decode(opening.get("hello") or {})
        if not isinstance(hello, m.Hello) or not hello.member:
            raise Refused("no hello after the handshake")
        member = self._fleet.members.get(hello.member)
        if member is None and opening.get("resumes"):
            raise Refused("this hub does not know that member")
        seen = int(opening.get("seen", 0))
        writer.write(frames.pack({"seen": 0 if member is None else member.order.received}))
        if member is None:
            member = self._fleet.join(hello)
        elif not member.is_live:
            raise Refused("that member was given up")
        member.linked(writer, seen)
        return member
