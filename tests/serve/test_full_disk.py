"""A file system of a few megabytes that really runs full under the service, and has room again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest

from semibandit.client import Client
from semibandit.serve.snapshots import FolderShelf
from semibandit.serve.sqlite_store import SqliteStore
from support.load import OPTIONS, check, direct, loaded
from support.service import Server, until

_SIZE = 6 * 2**20


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of its own."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root on Linux can mount a small file system")
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "semibandit-test", str(place)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


def test_a_folder_that_can_only_be_read_is_told(small_disk):
    with Server(small_disk / "data", *OPTIONS) as server:
        with Client(server.address) as client:
            client.select()
        server.kill()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for place in ("data", "other"):
        server = Server(small_disk / place, *OPTIONS)
        assert server.process.wait(60) == 2
        server._reader.join(10)
        assert len(server.lines) == 1 and "Read-only file system" in server.lines[0]


def fill(path):
    """Write into a file until not a byte more fits."""
    with path.open("wb", buffering=0) as file:
        for size in (2**16, 2**12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


def test_a_disk_that_runs_full_twice_loses_nothing_acknowledged(small_disk):
    data, ballast = small_disk / "data", small_disk / "ballast"
    ballast.write_bytes(bytes(_SIZE - 2**20))
    with (
        Server(data, *OPTIONS) as server,
        Client(server.address, retries=0) as client,
        loaded(4, 3) as loads,
    ):
        direct(loads, server.address)
        for again in range(2):
            # By the log alone the first time; by somebody else, in the middle of it, the second.
            if again:
                fill(ballast)
            until(lambda: not client.is_ready(), 60)
            assert os.statvfs(small_disk).f_bavail < 64
            acknowledged = sum(len(load.acknowledged) for load in loads)
            assert acknowledged > 0
            with pytest.raises(Exception, match=r"not done|not serving"):
                client.select()
            ballast.unlink()
            until(client.is_ready, 60)
            until(lambda before=acknowledged: sum(len(one.acknowledged) for one in loads) > before + 50, 60)
        for load in loads:
            load.ended = True
        for load in loads:
            load.join(30)
        assert server.stop() == 0
    assert "full" in server.told("log_failed")["error"]
    assert sum('"recovered"' in line for line in server.lines) >= 2
    acknowledged, decisions = check((SqliteStore(data), FolderShelf(data / "snapshots")), loads)
    assert acknowledged > 100 and decisions > 100
