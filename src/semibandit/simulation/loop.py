"""The compiled loop: policy and environment in one kernel, O(D) bookkeeping a round."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

from semibandit.compiled.jit import kernel
from semibandit.compiled.prefetch import prefetch
from semibandit.engines.clock import tick
from semibandit.engines.kernels import add_reward, engine_select, engine_touch_answer
from semibandit.environments.draw import draw_many

REGRET, REWARD = 0, 1
SELECT, DRAW, UPDATE = 0, 1, 2

# Rewards are drawn for so many arms at a time, whose parameters are asked for just before where there are many arms.
_AHEAD = 64
_MANY = 20_000


@intrinsic
def cycles(typingctx: Any) -> Any:
    """The processor's cycle counter: cheap enough to tell select from update in rounds of 100 ns."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        function_type = ir.FunctionType(ir.IntType(64), [])
        name = "llvm.readcyclecounter"
        function = builder.module.globals.get(name)
        if function is None:
            function = ir.Function(builder.module, function_type, name)
        return builder.call(function, [])

    return types.int64(), codegen


@kernel
def run_rounds(state, clock, env, means, optimal, t, n_rounds, out, rewards, totals, ticks, log):  # type: ignore[no-untyped-def]
    """Play rounds t + 1 .. t + n_rounds. Changes the engine, the clock, the environment's counters,
    `totals` (cumulative regret and reward), `ticks` (cycles in select, draw, update) and `log` (one row of arms
    a round, if it has rows)."""
    recs = state.recs
    n_arms = recs.shape[0]
    per_arm = env.params.shape[0] // n_arms
    start = cycles()
    for i in range(n_rounds):
        t += 1
        lam = tick(clock, t)
        n = engine_select(state, lam, out)
        selected = cycles()
        value = 0.0
        reward = 0.0
        for begin in range(0, n, _AHEAD):
            end = min(begin + _AHEAD, n)
            arms, drawn_now = out[begin:end], rewards[begin:end]
            if n_arms > _MANY:
                for j in range(end - begin):
                    prefetch(env.pulls, arms[j])
                    prefetch(env.params, arms[j] * per_arm)
                    prefetch(means, arms[j])
            draw_many(
                env.kind,
                env.seed,
                env.scalars,
                env.params,
                env.offsets,
                env.values,
                env.pulls,
                arms,
                t,
                drawn_now,
            )
            for j in range(end - begin):
                value += means[arms[j]]
                reward += drawn_now[j]
        if i < log.shape[0]:
            for j in range(n):
                log[i, j] = out[j]
        drawn = cycles()
        for j in range(n):
            add_reward(recs, out[j], rewards[j])
        engine_touch_answer(state, out, n)
        totals[REGRET] += optimal - value
        totals[REWARD] += reward
        ticks[SELECT] += selected - start
        ticks[DRAW] += drawn - selected
        updated = cycles()
        ticks[UPDATE] += updated - drawn
        start = updated
    return t
