"""``python -m rankscope.lsp``: the language server, over standard input and output."""

from __future__ import annotations

import logging
import sys
from pathlib import Path


def main() -> int:
    """Serve one client until it leaves. 3: a library is missing."""
    # A packaged extension's own libraries come first: an old pygls of the person's is of no use here.
    sys.path.insert(0, str(Path(__file__).parent / "bundled"))
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        from rankscope.lsp.server import server
    except ImportError as e:
        sys.stderr.write(f"ERROR rankscope.lsp: {e}\n")
        return 3
    server.start_io()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
