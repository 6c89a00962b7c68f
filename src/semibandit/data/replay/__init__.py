"""Off-policy evaluation: what a policy would have earned, from logged bandit feedback; and starting one from a log.

A log has a row for each played arm (long format). Columns can have any names, see `read_log`:

===================  ==============  =================================================================================
column               type            what
===================  ==============  =================================================================================
``round``            integer, text   number of the decision, or its name; rows of one round belong together
``arm``              integer         arm id, 0 .. K - 1; an arm occurs at most once in a round
``reward``           number          its reward, within the reward range
``propensity``       number          optional, per arm: the probability with which the logging policy's base holds this
                                     arm, in (0, 1]; they add up to D over all arms (also found as ``probability``)
``base_propensity``  number          optional, per base: the probability with which it plays exactly this base, the same
                                     in all rows of the round; they add up to 1 over all bases
===================  ==============  =================================================================================

Other columns are left alone. Rows are counted from 1, without the header. Rounds are replayed in the order of their
numbers; named ones in the order of the rows. Without propensities bases must be uniformly random (`replay` tests that).

Of each round that was replayed there are the arms shared with the log, each with its reward r, its weight w (one over
its propensity) and what a model expects of it, m; the number of arms chosen, n; and what the model expects of all of
them, M. With sums over shared arms, and averages over rounds:

===========  =============================================================================================
estimator    what
===========  =============================================================================================
``ips``      inverse propensity score, the average of sum w r: unbiased (Horvitz and Thompson 1952)
``snips``    self-normalised: the same divided by the average of sum w / n, which is 1 in expectation; steadier, hardly
             biased (Swaminathan and Joachims 2015)
``clipped``  ``ips`` with weights above a limit cut to it: less spread, some bias (Ionides 2008)
``dr``       doubly robust, the average of M + sum w (r - m): unbiased if the propensities are right, or the model is
             (Dudik, Langford and Li 2011)
===========  =============================================================================================
"""

from __future__ import annotations

from semibandit.data.replay.log import Log, read_log
from semibandit.data.replay.propensities import uniformity
from semibandit.data.replay.result import Estimate, ReplayResult
from semibandit.data.replay.run import random_log, replay, warm_start

__all__ = [
    "Estimate",
    "Log",
    "ReplayResult",
    "random_log",
    "read_log",
    "replay",
    "uniformity",
    "warm_start",
]
