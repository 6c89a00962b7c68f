"""A decision service: several policies behind HTTP, every acknowledged event on disk (extra ``serve``).

The room has two halves. The core knows nothing of HTTP and is deterministic: `events` is what the log holds, `host`
applies it (`seats` and `ledger`: one policy, and what its decisions wait for), so a snapshot and the rest of the log
give the service that never stopped, bit for bit. Around it: `store` keeps the log (`sqlite_store`, `postgres_store`),
`committer` writes one group for all who wait, `archive` keeps whole states (`snapshots`), `service` holds these
together while requests come, `standby` follows the log of another. The other half speaks HTTP: `wire` is what requests
and answers are made of, `app` serves them, `metrics` and `pulse` tell how it goes.
"""
