"""A headless Chromium driven over a pipe: enough to open a page, hear its complaints and take its picture.

The browser speaks the DevTools protocol on two file descriptors, a message of JSON ending in a zero byte, so no package
is needed beside the browser itself.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)


def find_browser() -> str | None:
    """The path of a Chromium, None when there is none."""
    given = os.environ.get("SEMIBANDIT_CHROMIUM")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    return given or next((found for name in names if (found := shutil.which(name))), None)


class Browser:
    """One page. `complaints` collects console messages, errors and failed loads; `requests` what was asked for."""

    def __init__(self, path: str) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        hear, out = os.pipe()
        into, tell = os.pipe()
        # Above 3 and 4, which the shell below is going to use.
        their_in, their_out = (fcntl.fcntl(end, fcntl.F_DUPFD, 30) for end in (into, out))
        os.close(into)
        os.close(out)
        self._hear, self._tell = hear, tell
        # The browser reads commands from descriptor 3 and answers on 4.
        script = f'exec "$0" "$@" 3<&{their_in} 4>&{their_out} {their_in}<&- {their_out}>&-'
        self._process = subprocess.Popen(
            ["bash", "-c", script, path, *FLAGS, f"--user-data-dir={self._home.name}", "about:blank"],
            pass_fds=(their_in, their_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        self._rest = b""
        self._next = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._hear)
        os.close(self._tell)
        self._home.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events on the way are noted."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._tell, json.dumps(message).encode() + b"\0")
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            for answer in self._messages(limit):
                if answer.get("id") == self._next:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']}")
                    result: dict[str, Any] = answer["result"]
                    return result
                self._note(answer)
        raise TimeoutError(method)

    def _messages(self, limit: float) -> list[dict[str, Any]]:
        ready, _, _ = select.select([self._hear], [], [], max(0.0, limit - time.monotonic()))
        if not ready:
            return []
        data = os.read(self._hear, 1 << 20)
        if not data:
            raise RuntimeError("the browser has gone")
        *whole, self._rest = (self._rest + data).split(b"\0")
        return [json.loads(one) for one in whole]

    def _note(self, event: dict[str, Any]) -> None:
        method, about = event.get("method", ""), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console.{about['type']}: {about['args']}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {about['exceptionDetails']}")
        elif method == "Log.entryAdded":
            self.complaints.append(f"log: {about['entry']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])

    def open(self, file: Path, width: int, height: int = 900, dark: bool = False, fragment: str = "") -> None:
        """Load a local file in a window of this size and wait until it is there."""
        self.visit(file.resolve().as_uri() + fragment, width, height, dark)

    def visit(self, address: str, width: int, height: int = 900, dark: bool = False) -> None:
        """Load an address in a window of this size and wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        # Events of the blank page may still be on their way, so the page itself is asked.
        there = f"location.href === {json.dumps(address)} && document.readyState === 'complete'"
        limit = time.monotonic() + 60
        while not self.run(there):
            assert time.monotonic() < limit, "the page does not load"
            time.sleep(0.02)

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str, seconds: float = 30.0) -> Any:
        """Wait until a JavaScript expression is true in the page; its value."""
        limit = time.monotonic() + seconds
        while not (found := self.run(expression)):
            assert time.monotonic() < limit, f"it never came true: {expression}"
            time.sleep(0.05)
        return found

    def press(self, key: str, code: int, text: str = "") -> None:
        """A key of the keyboard goes down and up."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text
            )

    def picture(self, path: Path) -> None:
        """The whole page as a PNG file."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(answer["data"]))
