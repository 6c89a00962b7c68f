"""The compiled loop: policy, engine and environment without Python, O(D) bookkeeping a round.

It is handed the addresses of the policy's kernels, so one loop serves all of them; a call costs a few nanoseconds.
"""

from __future__ import annotations

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.memory import cycles, prefetch
from semibandit.environments.draw import draw_many
from semibandit.policies.rounds import ASK, select_at, update_at

REGRET, REWARD = 0, 1
MOVED, STRICT = 0, 1
SELECT, DRAW, UPDATE = 0, 1, 2

# Rewards are drawn for so many arms at a time, whose parameters are asked for just before where there are many arms.
_AHEAD = 64
_MANY = 20_000


@inline_kernel
def draw_ahead(env, means, arms, t, rewards, many):
    """Draw the rewards of `arms`; (sum of their means, sum of the rewards). Changes the environment. O(len(arms))."""
    per_arm = env.params.shape[0] // means.shape[0]
    value = 0.0
    reward = 0.0
    for begin in range(0, arms.shape[0], _AHEAD):
        end = min(begin + _AHEAD, arms.shape[0])
        part, drawn = arms[begin:end], rewards[begin:end]
        if many:
            for j in range(end - begin):
                prefetch(env.pulls, part[j])
                prefetch(env.params, part[j] * per_arm)
                prefetch(means, part[j])
        draw_many(
            env.kind, env.seed, env.scalars, env.params, env.offsets, env.values, env.pulls, part, t, drawn
        )
        for j in range(end - begin):
            value += means[part[j]]
            reward += drawn[j]
    return value, reward


@inline_kernel
def move_inside(bounds, arms, rewards):
    """Move rewards that are outside the ranges of their arms to the nearer end; how many were. O(len(arms)).

    `bounds`: the low ends and then the high ones, one for all arms or one for each.
    """
    m = bounds.shape[0] // 2
    moved = 0
    for j in range(arms.shape[0]):
        at = arms[j] if m > 1 else 0
        inside = min(max(rewards[j], bounds[at]), bounds[m + at])
        moved += inside != rewards[j]
        rewards[j] = inside
    return moved


@kernel
def run_rounds(
    env,
    calls,
    own,
    engine,
    means,
    optimal,
    mirror,
    bounds,
    outside,
    t,
    n_rounds,
    out,
    rewards,
    totals,
    ticks,
    log,
):
    """Play rounds t + 1 .. t + n_rounds, fewer if the policy must be asked before. Returns the last round played.

    `calls`: the addresses of select and update, `own` and `engine`: the handles that they are called with.
    `mirror`: (what cost and reward add up to, low and high end of rewards) if the policy is told costs, else empty.
    `bounds`: as `move_inside`, empty if all draws are inside; `outside` counts what was moved, or, if strict, the draws
    for which the rounds end before anything is learnt from them. Changes the policy, its engine, the environment's
    counters, `totals` (cumulative regret and reward), `ticks` (cycles in select, draw, update) and `log` (one row of
    arms a round, if it has rows).
    """
    many = means.shape[0] > _MANY
    select, update = calls
    start = cycles()
    for i in range(n_rounds):
        n = select_at(select, own, engine, t + 1, out)
        if n == ASK:
            break
        t += 1
        selected = cycles()
        value, reward = draw_ahead(env, means, out[:n], t, rewards, many)
        if i < log.shape[0]:
            for j in range(n):
                log[i, j] = out[j]
        lost = optimal - value
        if bounds.shape[0] > 0:
            outside[MOVED] += move_inside(bounds, out[:n], rewards)
            if outside[STRICT] and outside[MOVED]:
                break
        if mirror.shape[0] > 0:
            lost = -lost
            for j in range(n):
                # Rounding may miss the end of the range by a hair.
                rewards[j] = min(max(mirror[0] - rewards[j], mirror[1]), mirror[2])
        drawn = cycles()
        update_at(update, own, engine, out, rewards, n)
        totals[REGRET] += lost
        totals[REWARD] += reward
        ticks[SELECT] += selected - start
        ticks[DRAW] += drawn - selected
        updated = cycles()
        ticks[UPDATE] += updated - drawn
        start = updated
    return t
