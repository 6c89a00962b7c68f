"""The service as a process: killed at any moment, stopped in order, started twice, on a full disk."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import time

import pytest

from semibandit.client import Client
from semibandit.serve.events import Selected
from semibandit.serve.snapshots import FolderShelf
from semibandit.serve.sqlite_store import SqliteStore
from support.load import OPTIONS, Load, check, kill_again_and_again
from support.service import Server, events_in, until


def kept(folder):
    """The log and the snapshots of a folder."""
    return SqliteStore(folder), FolderShelf(folder / "snapshots")


def test_killed_under_load_nothing_acknowledged_is_lost(tmp_path):
    acknowledged, decisions = kill_again_and_again(tmp_path, kept(tmp_path), kills=3, clients=4, seed=1)
    assert acknowledged > 20 and decisions > 20


@pytest.mark.slow
def test_killed_two_hundred_times(tmp_path):
    acknowledged, _ = kill_again_and_again(tmp_path, kept(tmp_path), kills=200, clients=8, seed=2)
    assert acknowledged > 2000


def test_told_to_stop_it_drains_and_exits_with_zero(tmp_path):
    with Server(tmp_path, *OPTIONS) as server:
        loads = [Load(i) for i in range(4)]
        for load in loads:
            load.address = server.address
            load.start()
        until(lambda: sum(len(load.acknowledged) for load in loads) > 50)
        assert server.stop() == 0
        for load in loads:
            load.ended = True
            load.join(30)
    acknowledged, decisions = check(kept(tmp_path), loads)
    assert acknowledged > 50
    assert "60" in server.lines[1] and "no snapshot, 0 events replayed" in server.lines[2]
    # a second one is refused while the first runs, and says why
    with Server(tmp_path, *OPTIONS) as first:
        assert ", 0 events replayed" in first.lines[2] and "the snapshot of event" in first.lines[2]
        second = Server(tmp_path, *OPTIONS)
        assert second.process.wait(60) == 2
        second._reader.join(10)
        assert f"is served already, by process {first.process.pid}" in "\n".join(second.lines)
        with Client(first.address) as client:
            assert client.select().round == decisions + 1


def test_a_full_disk_and_room_again(tmp_path):
    """The process may write no file beyond a size; then it may again."""
    with Server(tmp_path, *OPTIONS) as server, Client(server.address, retries=0) as client:
        decision = client.select()
        client.reward(decision, [1.0] * 4)
        pid = server.process.pid
        size = (tmp_path / "log.sqlite-wal").stat().st_size
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
        late = client.select  # its event is refused by the disk
        with pytest.raises(Exception, match=r"not done|not serving"):
            for _ in range(50):
                late(count=100)
        assert not client.is_ready()
        with pytest.raises(Exception, match="not serving"):
            client.reward(decision, [1.0] * 4)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        until(client.is_ready)
        assert client.reward(decision, [1.0] * 4).duplicates == 4
        rounds = client.select().round
        assert server.stop() == 0
    made = sum(len(event.sizes) or 1 for event in events_in(tmp_path) if type(event) is Selected)
    assert made == rounds
    assert any('"recovered"' in line for line in server.lines)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    server = Server(tmp_path / "file" / "data", *OPTIONS)
    assert server.process.wait(60) == 2
    server._reader.join(10)
    assert "Not a directory" in server.lines[-1] and len(server.lines) == 1


def test_slow_clients_are_let_go(tmp_path):
    import socket

    file = tmp_path / "service.toml"
    file.write_text(
        "[server]\nrequest_timeout = 0.5\n"
        '[policies.default]\npolicy = "cts"\nmatroid = { kind = "uniform", arms = 60, rank = 4 }\n'
    )
    with Server(tmp_path / "data", file) as server:
        host, port = server.address.removeprefix("http://").split(":")
        head = b"POST /v1/policies/default/select HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        for part in (b"", head, head + b"content-length: 100\r\n\r\n{"):
            with socket.create_connection((host, int(port)), timeout=10) as slow:
                slow.sendall(part)
                began = time.monotonic()
                with contextlib.suppress(ConnectionResetError):
                    assert slow.recv(1000) == b""
                assert time.monotonic() - began < 5
        with Client(server.address) as client:
            assert client.select().round == 1, "nothing of theirs was done"


def test_a_service_that_is_stopped_while_it_starts_leaves_in_peace(tmp_path):
    """Told so when its socket listens and its policy is not there yet."""
    command = [sys.executable, "-m", "semibandit", "serve", "--data", str(tmp_path / "state"), "--port", "0"]
    command += ["--matroid", "uniform", "--arms", "3000000", "--rank", "10", "--policy", "cucb"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    log = tmp_path / "state" / "log.sqlite"
    until(lambda: log.exists() or process.poll() is not None)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in said, said


def test_an_answer_leaves_in_one_piece(tmp_path):
    """Head and body in one write, also when the connection is closed after it."""
    with Server(tmp_path, *OPTIONS) as server:
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as one:
            for closing in ("", "connection: close\r\n"):
                head = f"POST /v1/policies/default/select HTTP/1.1\r\nhost: localhost\r\n{closing}content-length: 2\r\n"
                one.sendall(f"{head}content-type: application/json\r\n\r\n{{}}".encode())
                answer = one.recv(65536)
                assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"}") and b'"arms"' in answer
            assert one.recv(10) == b""
        assert server.stop() == 0
