"""Arms by name: a policy whose arms are labels of the caller's own, that come, expire and come back.

`Catalog` wraps a policy and its matroid; `kinds` says what an arm may be (an item of a category, a link between two
places, a worker who can do some tasks), `ids` which label has which arm, `rounds` what is decided and learnt,
`decisions` what waits for its feedback, and `labels` how labels stand in files.
"""

from __future__ import annotations

from semibandit.catalog.catalog import Catalog
from semibandit.catalog.decisions import LabelledDecision

__all__ = ["Catalog", "LabelledDecision"]
