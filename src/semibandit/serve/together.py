"""Rewards of many decisions in one go: what a batch of them costs is what it teaches, not Python.

What is learnt, logged and answered is as one by one; whatever is more than all rewards of a decision that waits for
all of them is left to `Host.reward`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from semibandit.serve.events import Rewarded, pack_numbers
from semibandit.serve.wire import Learnt, RewardsOperation

if TYPE_CHECKING:
    from semibandit.serve.host import Host
    from semibandit.serve.seats import Seat

_NO_TIMES = np.empty(0, dtype=np.int64)


def reward_together(
    host: Host, at: int, name: str, told: list[RewardsOperation]
) -> tuple[list[Rewarded], list[Learnt]]:
    """`Host.reward` of those of `told` that stand at its beginning and are plain: their events and answers.

    Perhaps of none, and nothing is learnt then. O(rewards).
    """
    at = host.now(at)
    seat = host.seats.get(name)
    if seat is None or not seat.learns_together():
        return [], []
    numbers, counts, values = _plain_ones(host, seat, at, told)
    if len(numbers) < 2:
        return [], []
    seat.tick(at)
    rewards = np.array(values, dtype=np.float64)
    asked = np.array(numbers, dtype=np.int64)
    done = seat.replay(asked, np.array(counts, dtype=np.int64), rewards, _NO_TIMES)[0]
    packed, end = pack_numbers(rewards), 0
    events, learnt = [], []
    for number, n in zip(numbers[:done], counts[:done], strict=True):
        events.append(Rewarded(at, name, number, packed[end : end + 8 * n]))
        learnt.append(Learnt(n, 0, 0, 0))
        end += 8 * n
    if done:
        host.position, host.time = host.position + done, at
    return events, learnt


def _plain_ones(
    host: Host, seat: Seat, at: int, told: list[RewardsOperation]
) -> tuple[list[int], list[int], list[float]]:
    """Decisions at the beginning of `told` that get all their rewards, how many each has, and these."""
    ledger, openings = seat.ledger, host.openings
    numbers: list[int] = []
    counts: list[int] = []
    values: list[float] = []
    seen: set[int] = set()
    for one in told:
        number = openings.number_of(seat.serial, one.decision or "")
        if number in seen or not ledger.oldest <= number < ledger.next or ledger.is_late(number, at):
            break
        n = ledger.size_of(number)
        if not 0 < n == ledger.left_of(number) == len(one.rewards):
            break
        seen.add(number)
        numbers.append(number)
        counts.append(n)
        values += one.rewards
    return numbers, counts, values
