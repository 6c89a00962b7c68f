"""A decision service: several policies behind HTTP, every acknowledged event on disk (extra ``serve``).

The room has two halves. The core knows nothing of HTTP and is deterministic: `events` is what the log holds, `host`
applies it (`seats`, `labelled`, `ledger`, `keys`: one policy, and what its decisions wait for; `openings`: what they
are called; `replaying`: the same again), so a snapshot and the rest of the log give the service that never stopped, bit
for bit. Around it: `store` says what a log must do (`sqlite_store` and `postgres_store` do it), `committer` writes one
group for all who wait, `snapshots` says what a shelf of whole states must do and reads them, `snapshotter` writes them
in a fork, `keeper` knows when, and `service` holds these together while requests come. `restoring` makes the state from
snapshot and log, `standby` does so all the time beside another server.

The other half speaks HTTP: `wire` is what requests and answers are made of, `app` is the door and the hot path,
`batches` and `several` many decisions in one request, `routes` everything else, `openapi` its description, `tokens` who
may do what, `protocol` ends the patience with slow clients, `metrics` and `pulse` tell how it goes (whoever wants to
look on is a `Watcher` of `Service.pulse`), `peek` and `watch` what the `page` shows, `settings` and `run` start it all.
`export` makes the log a table for off-policy evaluation.

Another store is a class with the methods of `store.Store`, named in `stores`; another place for snapshots one
with those of `snapshots.Shelf`.
"""
