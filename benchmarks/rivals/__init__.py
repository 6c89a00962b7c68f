"""Who we are measured against: the strongest ways to find CUCB's base every round that we know of."""

from __future__ import annotations
