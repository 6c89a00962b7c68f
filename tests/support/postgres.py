"""A PostgreSQL server for tests: on loopback, in a folder of its own, gone afterwards."""

from __future__ import annotations

import glob
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

#: Shown where the server is not there; `make postgres` installs it on Debian.
MISSING = (
    "no PostgreSQL server here: initdb and postgres (14 or later) are neither on the path nor in "
    "/usr/lib/postgresql/*/bin. Debian and Ubuntu: `make postgres` or `apt-get install postgresql`"
)
USER, PASSWORD = "learner", "s3cret-Of&Tests"


def binaries():
    """The folder with initdb and postgres of the newest version, None if there is none."""
    found = [Path(one) for one in glob.glob("/usr/lib/postgresql/*/bin")]
    found.sort(key=lambda path: [int(n) for n in re.findall(r"\d+", str(path))], reverse=True)
    on_path = shutil.which("postgres")
    for folder in [*found, *([Path(on_path).parent] if on_path else [])]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            told = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True).stdout
            if int(re.search(r"\d+", told).group(0)) >= 14:
                return folder
    return None


def _someone():
    """Whom to run it as: it refuses to be root."""
    if os.getuid() != 0:
        return {}
    names = [one.pw_name for one in pwd.getpwall()]
    name = "postgres" if "postgres" in names else "nobody"
    return {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}


class Postgres:
    """A server that can be stopped in any way and started again."""

    def __init__(self, folder):
        self._bin, self._as = folder, _someone()
        self.home = Path(tempfile.mkdtemp(prefix="semibandit-pg-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (self.home / "password").write_text(PASSWORD)
        if self._as:
            owner = pwd.getpwnam(self._as["user"])
            for path in (self.home, self.home / "password"):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        subprocess.run(
            [self._bin / "initdb", "-D", self.home / "data", "-U", USER, "-A", "scram-sha-256", "-E", "UTF8"]
            + ["--locale=C", f"--pwfile={self.home / 'password'}", "--no-instructions", "--no-sync"],
            check=True,
            capture_output=True,
            cwd=self.home,
            **self._as,
        )
        self._process = None
        self.start()

    def start(self):
        """Start it, and wait until it answers."""
        options = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.home,
            "shared_buffers": "32MB",
            "max_connections": 40,
            # Processes die in these tests, the machine does not.
            "fsync": "off",
        }
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.home / "data"]
                + [part for name, value in options.items() for part in ("-c", f"{name}={value}")],
                stdout=log,
                stderr=log,
                cwd=self.home,
                **self._as,
            )
        end = time.monotonic() + 60
        while True:
            try:
                self.run("postgres", "SELECT 1")
                return
            except Exception:
                assert self._process.poll() is None and time.monotonic() < end, (
                    self.home / "log"
                ).read_text()
                time.sleep(0.05)

    def stop(self, how=signal.SIGINT):
        """SIGINT ends all sessions and stops; SIGQUIT stops as a crash would, recovery at the next start."""
        self._process.send_signal(how)
        self._process.wait(60)

    def address(self, database="postgres", password=PASSWORD):
        """Where a database is, with the password."""
        quoted = password.replace("&", "%26")
        return f"postgresql://{USER}:{quoted}@127.0.0.1:{self.port}/{database}"

    def run(self, database, command, values=None):
        """What a command gives."""
        import psycopg

        with psycopg.connect(self.address(database), autocommit=True, connect_timeout=2) as db:
            found = db.execute(command, values)
            return found.fetchall() if found.description else None

    def remove(self):
        """Stop it, leave nothing."""
        if self._process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.home, ignore_errors=True)
