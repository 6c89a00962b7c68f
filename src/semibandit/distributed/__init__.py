"""Policies whose arms are spread over shards, in this process or over a cluster (Ray, an extra)."""

from semibandit.distributed.sharded import Sharded

__all__ = ["Sharded"]
