"""Commands as processes that begin with the package loaded, forked from one that has loaded it.

To start `python -m semibandit serve` takes a second of processor time, nearly all of it imports, and the tests do so
many times. What is forked has its own memory, signals and exit code; only its imports are not its own.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

_LOADED = [
    "semibandit.cli.serve",
    "semibandit.serve.run",
    "semibandit.policies.catalogue",
    "uvicorn",
    "uvloop",
]


class Forked:
    """`python -m semibandit` with these words, like a `subprocess.Popen` whose standard error is a stream of lines."""

    def __init__(self, words, env):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_LOADED)
        read, write = context.Pipe(duplex=False)
        self._process = context.Process(target=_command, args=(list(words), dict(env), write))
        self._process.start()
        write.close()
        self.stderr = os.fdopen(os.dup(read.fileno()), encoding="utf-8")
        read.close()
        self.pid = self._process.pid

    def send_signal(self, signal):
        """Unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal)

    def kill(self):
        """At once."""
        self._process.kill()

    def terminate(self):
        """By the signal that asks for it."""
        self._process.terminate()

    def poll(self):
        """The exit code, None while it runs."""
        return self._process.exitcode

    def wait(self, timeout=None):
        """The exit code, when it is there."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.pid, timeout)
        return self._process.exitcode


def _command(words, env, write):
    os.dup2(write.fileno(), 2)
    write.close()
    os.environ.clear()
    os.environ.update(env)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    sys.argv = ["semibandit", *words]
    from semibandit.cli.main import main

    main(words, prog_name="python -m semibandit")
