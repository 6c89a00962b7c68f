"""One round of Thompson sampling by stages: the greedy over the samples in descending order, drawn as far as needed.

Greedy looks at samples from the largest down. It may look at a value once every class that is still open is known down
to there. A class whose level is reached while it is open goes on to a lower level, or, where the arms that are still
open can be listed, these alone are drawn. Arms of closed classes, and arms that the picked ones span, are never drawn.
"""

from __future__ import annotations

from typing import NamedTuple

from semibandit.compiled.handle import Ints1, Number, Whole, Words1
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import merge_sort, sort_ids, sort_keys
from semibandit.policies.rounds import ASK, implement_rounds
from semibandit.policies.thompson.posterior_layout import GROUPS, NEED, SECOND, X0, Groups
from semibandit.policies.thompson.rounds import BEGIN, END, grouped_learn
from semibandit.policies.thompson.staged_firsts import draw_firsts
from semibandit.policies.thompson.staged_levels import (
    adapt_level,
    adapt_single,
    find_level,
    need_of_graph,
    open_level,
    reset_single,
    usual_need,
    wanted,
)
from semibandit.policies.thompson.staged_points import (
    ARM_BITS,
    BELOW,
    BEYOND,
    CLASS_BITS,
    FIRST,
    LATE,
    MARKED,
    PICKED,
    TRIED,
    Points,
    depth_of,
    draw_listed,
    draw_points,
    draw_stage,
    drop_late,
    level_depth,
    mark_points,
)
from semibandit.policies.thompson.staged_rules import (
    GRAPH,
    Rule,
    graph_run,
    rule_clear,
    rule_list,
    rule_open,
    rule_pick,
)

# Whether arms of one class stand in the way of another class; if not, whether a base has one arm of each at most.
MEETING, APART, SINGLE = 0, 1, 2


@kernel
def _sort_classes(g, points):
    """Classes by level, highest first, then by number; insertion, as few levels change from round to round. O(classes)
    for most."""
    order = points.order
    for i in range(1, order.shape[0]):
        c = order[i]
        x = g.level[c, X0]
        j = i
        while j > 0 and (
            g.level[order[j - 1], X0] < x or (g.level[order[j - 1], X0] == x and order[j - 1] > c)
        ):
            order[j] = order[j - 1]
            j -= 1
        order[j] = c


@inline_kernel
def _go_on(g, points, rng, rule, c, above):
    """Let class c, known down to `above`, be known further down, or all of it that is still open."""
    points.tally[c, BELOW] += 1
    want = wanted(g, c)
    n = rule_list(
        rule, points.spare_arm, min(points.spare_arm.shape[0], int(8.0 * want + g.level[c, GROUPS]) + 64)
    )
    if n >= 0:
        draw_listed(g, points, rng, c, above, n)
        return
    x = g.level[c, SECOND]
    if x >= above:
        x = find_level(g, c, 25.0 * want + 4.0 * points.tally[c, BELOW], above, 0.0, 2.0)
    draw_stage(g, points, rng, c, above, x)


@inline_kernel
def _play_part(g, points, rng, rule, value, entry, begin, end, j, stop, out, picked, most):
    """Greedy over the sorted samples begin .. end - 1 of the classes ``order[j:stop]``, until `most` arms are picked.

    Returns how many are, and the place after the last of these samples that was.
    """
    first = points.meta[FIRST]
    points.meta[LATE] = 0
    points.meta[MARKED] = 0
    i = last = begin
    if rule.kind == GRAPH and g.population.shape[0] == 1:
        # All samples of the first stage come before its level.
        before = picked
        picked, last, i = graph_run(rule.graph, entry, begin, end, ARM_BITS, out, picked, most)
        points.tally[0, PICKED] += picked - before
    while picked < most:
        # What comes next: a sample of the first stage, a level of the first stage, or something of later stages.
        x = value[i] if i < end else -1.0
        level = level_depth(g, points.order[j]) if j < stop else 0.0
        late = depth_of(points.value[first]) if points.meta[LATE] > 0 else -1.0
        if level > 0.0 and level >= x and level >= late:
            c = points.order[j]
            j += 1
            if g.population[c] > 0 and rule_open(rule, c):
                mark_points(points, entry, begin, end)
                _go_on(g, points, rng, rule, c, g.level[c, X0])
            continue
        if late > x:
            one, y = points.arm[first], points.value[first]
            drop_late(points)
            if one < 0:
                if rule_open(rule, -1 - one):
                    _go_on(g, points, rng, rule, -1 - one, y)
                continue
        elif i < end:
            one = entry[i]
            i += 1
        else:
            break
        c = one >> CLASS_BITS
        if rule_pick(rule, one & ARM_BITS, c):
            out[picked] = one & ARM_BITS
            picked += 1
            points.tally[c, PICKED] += 1
            last = i
    return picked, last


@kernel
def _by_class(points):
    """The samples of the first stage class by class, into the spare arrays; class c ends at ``count[c]``. O(n + C)."""
    count, tally = points.count, points.tally
    total = 0
    for c in range(tally.shape[0]):
        count[c] = total
        total += tally[c, BEYOND]
    for i in range(total):
        c = points.arm[i] >> CLASS_BITS
        points.spare_value[count[c]] = points.value[i]
        points.spare_arm[count[c]] = points.arm[i]
        count[c] += 1


@inline_kernel
def _play_apart(g, points, rng, rule, most, out):
    """Class by class, where an arm of one class never stands in the way of another class."""
    classes = g.population.shape[0]
    value, entry, spare_value, spare_arm = points.value, points.arm, points.spare_value, points.spare_arm
    if classes > 1:
        _by_class(points)
        value, entry, spare_value, spare_arm = spare_value, spare_arm, value, entry
    picked = 0
    begin = 0
    for c in range(classes):
        n = points.tally[c, BEYOND]
        end = begin + n
        need = most[c]
        if need == 1 and n > 0:
            best = begin
            for i in range(begin + 1, end):
                if value[i] > value[best] or (value[i] == value[best] and entry[i] < entry[best]):
                    best = i
            out[picked] = entry[best] & ARM_BITS
            picked += 1
            points.tally[c, PICKED] = 1
        elif need > 0:
            merge_sort(value[begin:end], entry[begin:end], n, spare_value, spare_arm)
            if n >= need:
                for i in range(begin, begin + need):
                    out[picked] = entry[i] & ARM_BITS
                    picked += 1
                points.tally[c, PICKED] = need
            else:
                picked, _ = _play_part(
                    g, points, rng, rule, value, entry, begin, end, c, c + 1, out, picked, picked + need
                )
        begin = end
    return picked


@inline_kernel
def _play_firsts(g, points, rng, rule, most, out):
    """The largest of each class, where that is all that a base may have of it."""
    picked = 0
    for c in range(g.population.shape[0]):
        if most[c] == 0:
            continue
        if points.value[c] >= 0.0:
            out[picked] = g.members[points.arm[c]]
            picked += 1
        else:
            rule.tree.left[c] = 1
            value, entry = points.value, points.arm
            picked, _ = _play_part(
                g, points, rng, rule, value, entry, 0, 0, c, c + 1, out, picked, picked + 1
            )
    return picked


@inline_kernel
def play_stages(g, points, rng, rule, most, apart, out):
    """The best base of one posterior sample, into `out`, unsorted; how many arms. `apart`: `APART` if an arm of one
    class never stands in the way of another class, `SINGLE` if a base has no more than one arm of each besides."""
    classes = g.population.shape[0]
    for c in range(classes):
        if g.level[c, GROUPS] == 0.0 and g.population[c] > 0:
            need = float(most[c])
            if apart == SINGLE and most[c] > 0:
                reset_single(g, c)
            else:
                # Where arms are refused one by one, about as many as connect a random graph.
                open_level(g, c, need if apart != MEETING or classes > 1 else usual_need(need))
    if apart != SINGLE:
        rule_clear(rule)
    last = 0
    if apart == SINGLE:
        draw_firsts(g, points, rng)
        picked = _play_firsts(g, points, rng, rule, most, out)
    elif apart == APART:
        draw_points(g, points, rng)
        picked = _play_apart(g, points, rng, rule, most, out)
    else:
        draw_points(g, points, rng)
        first = points.meta[FIRST]
        sort_keys(points.value, points.arm, first, points.spare_value, points.spare_arm, points.count)
        _sort_classes(g, points)
        value, entry, full = points.value, points.arm, out.shape[0]
        picked, last = _play_part(g, points, rng, rule, value, entry, 0, first, 0, classes, out, 0, full)
    if classes == 1 and apart == MEETING:
        # Arms that were refused were needed too; where going on is cheap, fewer samples will do.
        beyond, below = points.tally[0, BEYOND], points.tally[0, BELOW]
        need = float(last) if below == 0 else (0.9 * beyond if 4 * below < beyond else float(beyond))
        if rule.kind == GRAPH:
            need = need_of_graph(g.level[0, NEED], float(last), below, need, float(most[0]))
        adapt_level(g, 0, float(points.tally[0, TRIED]), float(beyond), need, below)
    elif apart == SINGLE:
        for c in range(classes):
            if most[c] > 0:
                adapt_single(g, c, float(points.tally[c, TRIED]), points.tally[c, BELOW])
    else:
        for c in range(classes):
            t = points.tally[c]
            adapt_level(g, c, float(t[TRIED]), float(t[BEYOND]), float(t[PICKED]), t[BELOW])
    return picked


class StagedRounds(NamedTuple):
    """`most`: how many arms of each class are in a base at most. `apart`: as `play_stages` says.
    The rest as in `rounds.PlainRounds` and `rounds.move_waiting`."""

    low: Number
    span: Number
    groups: Groups
    points: Points
    rule: Rule
    most: Ints1
    apart: Whole
    rng: Words1
    waiting: Ints1
    won: Ints1
    meta: Ints1


@kernel
def _staged_select(own, engine, t, out):
    """The best base of one sample. ASK while outcomes wait for room."""
    if own.meta[BEGIN] < own.meta[END]:
        return ASK
    points = own.points
    n = play_stages(own.groups, points, own.rng, own.rule, own.most, own.apart, out)
    sort_ids(out, n, points.spare_arm, points.count)
    return n


implement_rounds(StagedRounds, select=_staged_select, learn=grouped_learn, touches="nothing")
