"""The command line. Nothing heavy is imported before a command runs, so that ``--help`` stays fast."""

from __future__ import annotations
