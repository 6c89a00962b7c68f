"""Watch a policy learn on a small instance: a page with a slider, an animation, or a picture."""

from __future__ import annotations

from semibandit.report.watch.page import list_page, network_page
from semibandit.report.watch.recording import Frame, Recording, record
from semibandit.report.watch.worlds import layout, random_list, random_network

__all__ = [
    "Frame",
    "Recording",
    "layout",
    "list_page",
    "network_page",
    "random_list",
    "random_network",
    "record",
]
