"""How long a round takes on an instance of your own: our engines, numpy and a one-pass scan, on the same rounds.

`start` makes the state that all begin in, `contenders` are those who play, `numpy_rivals` what one writes with numpy,
`measure` takes the time. Every rival we know of, and the suite behind docs/performance.md, are in the folder
``benchmarks`` beside the package.
"""

from __future__ import annotations

from semibandit.bench.measure import Case, measure_instance

__all__ = ["Case", "measure_instance"]
