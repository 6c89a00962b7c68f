"""A naive account of the service: what was decided, which rewards were told, what counts. Dictionaries only."""

from __future__ import annotations


class NaiveLedger:
    """Decisions by number; each (decision, place) counts once, until the decision is too old or pushed out."""

    def __init__(self, ttl=None, most=None, most_arms=None):
        self.ttl, self.most, self.most_arms = ttl, most, most_arms
        self.made = {}  # number -> (at, arms, {place: reward or None})
        self.next = 0

    def tick(self, now):
        gone = [n for n, (at, _, _) in self.made.items() if self.ttl is not None and at + self.ttl <= now]
        for number in gone:
            del self.made[number]

    def add(self, arms, at):
        def kept():
            return sum(len(one[1]) for one in self.made.values())

        while self.made and (
            (self.most is not None and len(self.made) >= self.most)
            or (self.most_arms is not None and kept() + len(arms) > self.most_arms)
        ):
            del self.made[min(self.made)]
        self.made[self.next] = (at, list(arms), {})
        self.next += 1
        return self.next - 1

    def reward(self, number, places):
        """Which of these places count now; None for a decision that is not kept."""
        if number not in self.made:
            return None
        told = self.made[number][2]
        fresh = [place for place in places if place not in told]
        told.update(dict.fromkeys(fresh, True))
        return fresh

    def waiting(self, number):
        _, arms, told = self.made[number]
        return [arm for place, arm in enumerate(arms) if place not in told]

    def pending(self):
        return sum(1 for number in self.made if self.waiting(number))


def tally(events):
    """Counts and sums by arm, from (number, arms) of decisions and (number, places or None, rewards) in order.

    A place told twice is an error: the log holds only what counts.
    """
    decisions, seen, counts, sums = {}, set(), {}, {}
    for event in events:
        if len(event) == 2:
            number, arms = event
            assert number not in decisions
            decisions[number] = arms
            continue
        number, places, rewards = event
        arms = decisions[number]
        for place, reward in zip(range(len(arms)) if places is None else places, rewards, strict=True):
            assert (number, place) not in seen, "counted twice"
            seen.add((number, place))
            counts[arms[place]] = counts.get(arms[place], 0) + 1
            sums[arms[place]] = sums.get(arms[place], 0.0) + reward
    return decisions, seen, counts, sums
