"""Where the level of a class stands: so that a little more of its samples lie beyond it than a round needs.

The expected number of samples beyond x is about the sum of the guesses of `posterior_tail` over the groups. A level is
found by halving for a wanted sum, and found anew when the work wasted since pays for that. The law of a round does not
depend on levels, only its cost; they are set between rounds, by the past.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.policies.thompson.posterior_groups import set_level
from semibandit.policies.thompson.posterior_layout import (
    BOOST,
    FIRST_CHUNK,
    G_LOSSES,
    G_WINS,
    GROUPS,
    LOG_BETA,
    NEED,
    SECOND,
    SIZE,
    WASTE,
    X0,
    end_of_chunk,
)
from semibandit.policies.thompson.posterior_tail import tail_guess

_MEMORY, _SHRINK, _STEP, _MOST_BOOST = 1.0 / 32.0, 0.998, 1.4, 64.0
# The second stage is to have so many times the samples of the first, or up to so many times more.
_NEXT_STAGE, _NEXT_CLOSE = 3.0, 3.0
# A setting costs about this many looks at every group.
_LOOKS = 4.0
_CLOSE, _MOST_STEPS = 1.25, 40
# What a round in a graph says that was needed, of what was thought: without and with a second stage; and up to how many
# times what is usual.
_FEWER, _MORE, _MOST_OF_USUAL = 0.96, 1.36, 1.6


@kernel
def _expected(g, c, x):
    """About the expected number of samples of class c beyond x, and the number of groups. O(groups)."""
    log_x = math.log(x)
    log_y = math.log1p(-x)
    total = 0.0
    groups = 0
    first = g.ids[c, FIRST_CHUNK]
    while first >= 0:
        for k in range(first, end_of_chunk(g, c, first)):
            size = g.info[k, SIZE]
            if size > 0:
                wins, losses = float(g.info[k, G_WINS]), float(g.info[k, G_LOSSES])
                total += size * tail_guess(wins, losses, g.const[k, LOG_BETA], x, log_x, log_y)
                groups += 1
        first = g.after[first >> g.chunk]
    return total, groups


@inline_kernel
def _logit(x):
    return math.log(x / (1.0 - x))


@inline_kernel
def _expit(at):
    return 1.0 / (1.0 + math.exp(-at))


@kernel
def find_level(g, c, want, below, guess, close):
    """The x < `below` beyond which `want` samples of class c are expected, or up to `close` times as many; 0 if that is
    all of them, or most. Counts the groups unless it is 0.

    The logarithm of what is expected is nearly a straight line over the logit of x, so the next look is where the line
    through two others meets what is wanted. `guess`: where to look first, or 0. O(groups) a look, a handful of looks.
    """
    if 2.0 * want >= g.population[c]:
        return 0.0
    high = top = _logit(below)
    more, less, low = 0.0, -1.0, -math.inf
    at = top - 0.5 if guess <= 0.0 else min(_logit(guess), top - 0.125)
    step, aim = 0.5, math.sqrt(close)
    for i in range(_MOST_STEPS):
        total, g.level[c, GROUPS] = _expected(g, c, _expit(at))
        if total >= want:
            low, more = at, total
            if total <= close * want:
                break
        else:
            high, less = at, total
        if more == 0.0:
            at -= step
            step *= 2.0
            if at < -30.0:
                return 0.0
        elif less < 0.0:
            at = min(at + step, 0.5 * (at + top))
            step *= 2.0
        else:
            part = 0.5
            if less > 0.0 and i % 4 != 3:
                part = math.log(more / (aim * want)) / math.log(more / less)
            at = low + (high - low) * min(max(part, 0.05), 0.95)
    return _expit(low)


@kernel
def wanted(g, c):
    """How many samples of class c should lie beyond its level. O(1)."""
    need = g.level[c, NEED]
    return g.level[c, BOOST] * (need + 2.0 * math.sqrt(need) + 0.05)


@kernel
def reset_level(g, c):
    """Find the level of class c, and that of a second stage, anew. O(groups), a handful of times."""
    want = wanted(g, c)
    old, second = g.level[c, X0], g.level[c, SECOND]
    x = find_level(g, c, want, 1.0 - 2.0**-40, old, _CLOSE)
    if x > 0.0:
        guess = 0.0
        if 0.0 < second < old < 1.0:
            # As far below as it was.
            guess = _expit(_logit(x) - _logit(old) + _logit(second))
        second = find_level(g, c, _NEXT_STAGE * want, x, guess, _NEXT_CLOSE)
    else:
        second = 0.0
        _, g.level[c, GROUPS] = _expected(g, c, 0.5)
    g.level[c, SECOND] = second
    g.level[c, WASTE] = 0.0
    set_level(g, c, x)


@kernel
def open_level(g, c, need):
    """The first level of class c, for so many samples needed. O(groups)."""
    g.level[c, NEED] = need
    g.level[c, BOOST] = 1.0
    reset_level(g, c)


@kernel
def adapt_level(g, c, tried, beyond, need, below):
    """Learn from a round in which it took `tried` draws to find the `beyond` samples of class c beyond its level, of
    which `need` would have been enough, and `below` were looked at in later stages (0 if there were none).

    Amortised O(tried + below).
    """
    level = g.level[c]
    level[NEED] += _MEMORY * (need - level[NEED])
    if 2 * below > beyond:
        # So that a second stage, by what it costs, is about as dear as the samples that would have spared it. In small
        # steps: the level stays where it is until there is waste enough, and steps pile up until then.
        level[BOOST] = min(_MOST_BOOST, level[BOOST] * min(_STEP, 1.0 + 0.02 * below / (beyond + 1.0)))
    else:
        # Where few are needed, now and then a second stage is cheaper than always some more in the first.
        level[BOOST] = max(1.0 - 0.5 / (1.0 + level[NEED]), _SHRINK * level[BOOST])
    waste = float(below) + max(0.0, tried - 1.25 * wanted(g, c) - 3.0)
    if waste > 0.0:
        level[WASTE] += waste
        if level[WASTE] > _LOOKS * (level[GROUPS] + 4.0) and (level[X0] > 0.0 or beyond > 4.0 * need + 16.0):
            reset_level(g, c)


# Where the largest of a class is all that matters, most candidates are never drawn, and so many beyond the level are
# wanted, or that part of the arms if these are few. With fewer than such a part of that, or more than so many times as
# many, a level should move; how much less than a draw one too many costs.
_OF_SINGLE, _PART_OF_SINGLE, _THIN, _THICK, _LESS_DEAR = 9.0, 6.0, 0.6, 3.0, 16.0


@kernel
def reset_single(g, c):
    """`reset_level` of a class of which a base has one arm at most. O(groups), a handful of times."""
    g.level[c, NEED] = 1.0
    g.level[c, BOOST] = 1.0
    g.level[c, BOOST] = max(1.0, min(_OF_SINGLE, g.population[c] / _PART_OF_SINGLE) / wanted(g, c))
    reset_level(g, c)


@inline_kernel
def adapt_single(g, c, tried, below):
    """`adapt_level` of such a class, for so many expected candidates; `below`: as there. Amortised O(tried + below)."""
    level = g.level[c]
    if below > 0:
        if tried < _THIN * wanted(g, c) and level[X0] > 0.0:
            reset_single(g, c)
    elif tried > _THICK * _OF_SINGLE:
        level[WASTE] += tried
        if level[WASTE] > _LESS_DEAR * _LOOKS * (level[GROUPS] + 4.0):
            reset_single(g, c)


@inline_kernel
def usual_need(rank):
    """Where arms are refused one by one: about as many as connect a random graph. O(1)."""
    return rank * max(1.0, 0.5 * math.log(rank + 1.0))


@inline_kernel
def need_of_graph(old, last, below, plain, rank):
    """How many samples a round in a graph would have needed, of which the one at `last` was picked last, for the level
    to learn from; `plain`: what is said for other matroids. O(1).

    The edges of the last few vertices are dear to draw apart, and with V / 2 more samples their number falls by e. So
    one round in ten goes on to a second stage, unless the graph is far from a random one.
    """
    if below == 0:
        return last if 2.0 * last < old else _FEWER * old
    return _MORE * old if old < _MOST_OF_USUAL * usual_need(rank) else plain
