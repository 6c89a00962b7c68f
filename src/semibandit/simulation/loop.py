"""The compiled loop: policy and environment in one kernel, O(D) bookkeeping a round."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

from semibandit._jit import kernel
from semibandit.engines._dispatch import add_reward, engine_select, engine_touch
from semibandit.engines.clocks import tick
from semibandit.environments.draw import draw_one

REGRET, REWARD = 0, 1
SELECT, DRAW, UPDATE = 0, 1, 2


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
    for i in range(n_rounds):
        t += 1
        begin = cycles()
        lam = tick(clock, t)
        n = engine_select(state, lam, out)
        selected = cycles()
        value = 0.0
        reward = 0.0
        for j in range(n):
            arm = out[j]
            pull = env.pulls[arm]
            env.pulls[arm] = pull + 1
            rewards[j] = draw_one(
                env.kind, env.seed, env.scalars, env.params, env.offsets, env.values, arm, pull, t
            )
            value += means[arm]
            reward += rewards[j]
        if i < log.shape[0]:
            for j in range(n):
                log[i, j] = out[j]
        drawn = cycles()
        for j in range(n):
            add_reward(recs, out[j], rewards[j])
            engine_touch(state, out[j])
        totals[REGRET] += optimal - value
        totals[REWARD] += reward
        ticks[SELECT] += selected - begin
        ticks[DRAW] += drawn - selected
        ticks[UPDATE] += cycles() - drawn
    return t
