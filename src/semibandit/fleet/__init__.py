"""Many small policies at once: a learner for each user, session or site over the same arms, in one kernel."""

from semibandit.fleet.fleet import Fleet

__all__ = ["Fleet"]
