"""Build hook: kernels are compiled when the package is built, so that a first decision takes no compiler.

Editable installs get the level of this machine, wheels all levels of its kind. Without a C compiler, or with
``SEMIBANDIT_PURE=1``, the package is built without them and compiles its kernels when they are first used. With
``SEMIBANDIT_KERNELS=apart`` they are left as they are: whoever says so makes them apart, as the Makefile does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NOTICE = """\
semibandit is built WITHOUT kernels compiled ahead of time ({reason}).
It works all the same: kernels are compiled when they are first used, which takes up to half a minute, and kept on disk.
"""


class Kernels(BuildHookInterface):
    """Runs `semibandit.compiled.ahead` and puts what it made into the package."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        source = Path(self.root) / "src"
        out = source / "semibandit" / "compiled"
        if os.environ.get("SEMIBANDIT_PURE") == "1":
            for old in out.glob("_native*.so"):
                old.unlink()
            self.app.display_warning(_NOTICE.format(reason="SEMIBANDIT_PURE=1"))
            return
        if version == "editable" and os.environ.get("SEMIBANDIT_KERNELS") == "apart":
            return
        command = [sys.executable, "-m", "semibandit.compiled.ahead", "--out", str(out), "--if-needed"]
        if version != "editable":
            command.append("--portable")
        path = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH", "")]))
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False)
        if done.returncode:
            self.app.display_warning(_NOTICE.format(reason="see above"))
            return
        if version != "editable":
            from packaging.tags import sys_tags

            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{next(iter(sys_tags())).platform}"
            build_data["artifacts"] += [
                f"src/semibandit/compiled/{path.name}" for path in out.glob("_native*.so")
            ]
