"""What came out of an experiment: one HTML page, figures for papers, and the numbers behind both."""

from __future__ import annotations

from semibandit.report.data import Entry, Sweep, World, load_sweep
from semibandit.report.page import report_html

__all__ = ["Entry", "Sweep", "World", "load_sweep", "report_html"]
