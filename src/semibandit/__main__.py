"""``python -m semibandit``: the command line, where the script ``semibandit`` is not on the path."""

from __future__ import annotations

from semibandit.cli.main import main

if __name__ == "__main__":
    main(prog_name="python -m semibandit")
