"""Hosts of the service that are asked at random, with a log of what happened, and all bits of their state."""

from __future__ import annotations

import random

from semibandit.policies.catalogue import POLICIES
from semibandit.policies.files import _parse
from semibandit.serve.events import encode_event
from semibandit.serve.host import Host
from semibandit.serve.refusals import Refusal
from semibandit.serve.snapshots import write_snapshot
from semibandit.serve.wire import PolicySpec

#: How often a policy has looked for its base is no part of what it knows, and differs after a load.
WORK = {"kl-osm": ("lam", "moves"), "maub": ("oracle_rounds", "leaders")}

SECOND = 1_000_000


def content(host, folder):
    """All bits of a host's policies, and the rest of its state."""
    write_snapshot(host, folder)
    found = {}
    for i, seat in enumerate(host.seats.values()):
        about, arrays = _parse((folder / f"{i}.semibandit").read_bytes(), "x")
        if seat.labelled:
            inner, more = _parse(arrays.pop("policy").tobytes(), "x")
            about["inner"] = inner
            arrays |= {f"inner.{name}": array for name, array in more.items()}
        state = about["inner"] if seat.labelled else about
        for name in WORK.get(seat.spec.policy, ()):
            del state["state"]["map"][name]
        for one in (about, about.get("inner", {})):
            one.pop("arrays", None)
        found[seat.name] = about, {name: array.tobytes() for name, array in arrays.items()}
    return found, (folder / "host.msgpack").read_bytes()


class Player:
    """Random requests to a host, with a log of its events."""

    def __init__(self, host, seed):
        self.host, self.rng = host, random.Random(seed)
        self.log, self.now, self.ids = [], 1000 * SECOND, []
        self.names = {}

    def keep(self, event):
        if event is not None:
            self.log.append(encode_event(event))

    def create(self, name, spec, arms):
        try:
            self.keep(self.host.create(self.now, name, spec))
        except Refusal as error:
            assert error.status == 422, error.message
            return
        self.names[name] = arms

    def step(self):
        rng, host = self.rng, self.host
        self.now += rng.randrange(1, SECOND // 10)
        name = rng.choice(list(self.names))
        arms = self.names[name]
        u = rng.random()
        try:
            if u < 0.4:
                exclude = rng.sample(arms, min(2, len(arms))) if rng.random() < 0.2 else None
                among = rng.sample(arms, min(6, len(arms))) if rng.random() < 0.1 else None
                key = f"k{rng.randrange(40)}" if rng.random() < 0.1 else None
                count = rng.choice([None, None, 2])
                event, made = host.select(self.now, name, exclude, among, count, key)
                self.keep(event)
                self.ids += [(name, one.decision, one.arms) for one in made]
            elif u < 0.85 and self.ids:
                name, decision, played = rng.choice(self.ids[-40:])
                some = rng.sample(played, rng.randint(0, len(played)))
                rewards = [rng.random() for _ in some]
                if rng.random() < 0.3:
                    some, rewards = None, [rng.random() for _ in played]
                self.keep(host.reward(self.now, name, decision, some, rewards)[0])
            elif u < 0.9:
                some = rng.sample(arms, min(2, len(arms)))
                event, _ = host.update(
                    self.now, name, f"u{rng.randrange(30)}", some, [rng.random(), 1.0][: len(some)]
                )
                self.keep(event)
            elif host.seats[name].labelled:
                arm = rng.choice(arms)
                change = host.delete if arm in host.seats[name].catalog else host.insert
                self.keep(change(self.now, name, [arm]))
            else:
                self.keep(rng.choice([host.delete, host.insert])(self.now, name, [rng.choice(arms)]))
        except Refusal as error:
            assert error.status in (404, 409, 410, 422), error.message


def player(policy, seed=1):
    host = Host()
    made = Player(host, seed)
    made.keep(host.open(0, "aaaa"))
    options = {"horizon": 1000} if "horizon" in POLICIES[policy].options else {}
    given = {"policy": policy, "options": options, "ttl": 2.0, "seed": 7}
    made.create(
        "plain", PolicySpec(matroid={"kind": "uniform", "arms": 30, "rank": 4}, **given), list(range(30))
    )
    graph = {"kind": "graphic", "arms": 30, "rank": 9}
    made.create("costs", PolicySpec(matroid=graph, objective="min", max_pending=7, **given), list(range(30)))
    labels = list("abcdefghijklm")
    made.create(
        "names", PolicySpec(catalog={"kind": "uniform", "rank": 3, "labels": labels}, **given), labels
    )
    return made


#: Policies that can be served.
PLAYED = [name for name in POLICIES if name not in ("oracle", "comb-lin-ts", "comb-lin-ucb")]
