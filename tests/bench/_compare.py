"""One expression over eight stopped ranks: from the request until all rows are there."""

import sys
import time

from _measure import PROGRAMS, environment

from support.hub_session import HubSession

PROGRAM = PROGRAMS / "compare.py"
RANKS = 8
ROUNDS = 15


async def compare_ms_8():
    """A scalar."""
    return await _measured("loss", "number")


async def compare_tensor_ms_8():
    """Digest, min, max, mean, norm, NaN and Inf of 100 MB on each rank."""
    return await _measured("weight", "tensor")


async def _measured(expression, kind):
    line = next(n for n, text in enumerate(PROGRAM.read_text().splitlines(), 1) if text.endswith("# @bp hit"))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
    points = {str(PROGRAM): [{"line": line, "condition": "True  # @all"}]}
    session = await HubSession.launch([*torchrun, str(PROGRAM)], environment(), points)
    try:
        await session.until_stops(RANKS)
        await _asked(session, expression, kind)
        return [await _asked(session, expression, kind) for _ in range(ROUNDS)]
    finally:
        await session.close()


async def _asked(session, expression, kind):
    started = time.monotonic()
    body = await session.request("rankscope/compare", expression=expression, timeout=20)
    took = time.monotonic() - started
    rows = body["rows"]
    if len(rows) != RANKS or any(row["kind"] != kind for row in rows):
        raise RuntimeError(body["message"])
    if any(kind == "tensor" and (not row["tensor"]["digest"] or row["tensor"]["isPartial"]) for row in rows):
        raise RuntimeError("a tensor was not read to its end")
    return took * 1000
