"""Compiling kernels ahead of time: run when the package is built, never at run time.

    python -m semibandit.compiled.ahead [--out FOLDER] [--portable] [--jobs N]

A little of everything is played (`training`) to learn which kernels Python calls and with what types. These are
lowered by numba, linked into a few modules, optimised once for each level of the processor, and linked with `native.c`
into one extension module. Kernels and types that were not foreseen still go to the compiler at run time.

``SEMIBANDIT_AHEAD_ONLY=text`` takes only lessons whose name has that text in it: for work on this file.

Without ``--portable`` only the level of this machine is made, which is what an editable install wants; with it the
levels of `LEVELS`, among which the module chooses when it is imported. Needs numba and a C compiler.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from semibandit.compiled import jit, sources
from semibandit.compiled.jit import types
from semibandit.compiled.slots import NotAhead, call_in_slots, in_slots, kinds_of, spec_of

#: Names that LLVM has for the processors to build for; the last one of two is taken where it can run.
LEVELS = {"x86_64": ("x86-64-v2", "x86-64-v3"), "aarch64": ("generic",), "arm64": ("apple-m1",)}

#: How far LLVM looks for the last write to what is read: with its own limits (200 blocks, 100 instructions) this search
#: is a fifth of its time, and the code that comes out is as long.
_LOOK_BACK = ("-memdep-block-number-limit=20", "-memdep-block-scan-limit=40")

_HERE = Path(__file__).resolve().parent


# -- one object file a level -------------------------------------------------------------------------------------------


Recorded = dict[tuple[str, tuple[Any, ...]], jit.Kernel]


def compile_all(jobs: int, levels: list[str], out: Path) -> None:
    """Train everything in `jobs` processes, make object files of what they learnt, and write lists of what is in them.

    What most lessons share is learnt first; the processes then start from there, so it is compiled once. Each leaves
    its kernels in several modules, and whichever process is free takes the largest that is left.
    """
    import numba

    from semibandit.compiled import training

    recorded: Recorded = {}

    def record(kernel: jit.Kernel, *args: Any) -> Any:
        kinds = tuple(numba.typeof(arg) for arg in args)
        recorded[kernel.name, kinds] = kernel
        return kernel.dispatcher(*args) if kernel.allocates else call_in_slots(kernel, kinds, args)

    def record_address(kernel: jit.Kernel, spec: str) -> None:
        recorded[kernel.name, kinds_of(spec)[0]] = kernel

    # Compiling makes millions of objects and hardly any rubbish: looking for it takes a tenth of the time.
    gc.disable()
    jit.address_recorder = record_address
    jit.recorder, jit.keeps, jit.apart = record, False, True
    only = os.environ.get("SEMIBANDIT_AHEAD_ONLY", "")
    if jobs == 1 or not hasattr(os, "fork"):
        training.train(only=only)
        write_modules(0, recorded, out)
        for module in _modules(out):
            compile_module(module, levels)
        return
    training.train(0, jobs + 1, only)

    def learn(part: int) -> None:
        if part:
            recorded.clear()
        training.train(part + 1, jobs + 1, only)
        write_modules(part, recorded, out)

    waiting: list[Callable[[], None]] = [functools.partial(learn, part) for part in range(jobs)]
    seen: set[Path] = set()
    running: set[int] = set()
    failed = False
    while running or (waiting and not failed):
        while waiting and len(running) < jobs and not failed:
            running.add(_start(waiting.pop(0)))
        child, status = os.wait()
        running.discard(child)
        failed |= status != 0
        new = [module for module in _modules(out) if module not in seen]
        seen.update(new)
        waiting += [functools.partial(compile_module, module, levels) for module in new]
    if failed:
        raise SystemExit(1)


def _start(task: Callable[[], None]) -> int:
    """Run `task` in a process of its own, which knows what this one knows; its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        task()
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _modules(out: Path) -> list[Path]:
    """The modules in `out`, largest first."""
    return sorted(out.glob("part*.bc"), key=lambda path: -path.stat().st_size)


def write_modules(part: int, recorded: Recorded, out: Path) -> None:
    """Write the kernels in `recorded`, linked and not yet optimised, and a list of them."""
    from semibandit.compiled.modules import link, to_keep, together, ways_in

    entries: list[dict[str, str]] = []
    callers: dict[str, str] = {}
    needs: dict[str, list[Any]] = {}
    for (name, kinds), kernel in sorted(recorded.items(), key=lambda item: (item[0][0], str(item[0][1]))):
        symbol = f"semibandit_{part}_{len(entries)}"
        try:
            if kernel.allocates:
                raise NotAhead("it allocates")
            answer = kernel.dispatcher.compile_inner(kinds).signature.return_type
            spec = "".join(spec_of(kind) for kind in kinds) + ":" + spec_of(answer)
        except NotAhead as reason:
            print(f"not ahead of time: {name} ({reason})", file=sys.stderr)
            continue
        compiled = in_slots(kernel, kinds).dispatcher.compile_inner((types.int64,))
        callers[symbol], needs[symbol] = compiled.fndesc.llvm_func_name, compiled.library.parts()
        entries.append({"name": name, "fingerprint": kernel.fingerprint, "spec": spec, "symbol": symbol})
    every = dict.fromkeys(library for parts in needs.values() for library in parts)
    codes = {library: library._get_module_for_linking().as_bitcode() for library in every}
    sizes = {library: len(code) for library, code in codes.items()}
    for number, symbols in enumerate(together(needs, sizes)):
        libraries = dict.fromkeys(library for symbol in symbols for library in needs[symbol])
        ways = ways_in({symbol: callers[symbol] for symbol in symbols})
        module = link([ways, *(to_keep(codes[library]) for library in libraries)])
        for function in module.functions:
            if not function.is_declaration:
                function.linkage = "external" if function.name in symbols else "internal"
        for variable in module.global_variables:
            if not variable.is_declaration:
                variable.linkage = "internal"
        written = out / f"part{part}_{number}.new"
        written.write_bytes(module.as_bitcode())
        written.rename(written.with_suffix(".bc"))  # whole, when another process sees it
    (out / f"part{part}.json").write_text(json.dumps(entries))


def compile_module(path: Path, levels: list[str]) -> None:
    """Optimise the module in this file and write an object file a level beside it."""
    import llvmlite.binding as ll

    for option in _LOOK_BACK:
        ll.set_option("semibandit", option)
    ll.initialize_native_target()
    ll.initialize_native_asmprinter()
    target = ll.Target.from_triple(ll.get_process_triple())
    for number, cpu in enumerate(levels):
        module = ll.parse_bitcode(path.read_bytes())
        for function in module.functions:
            if not function.is_declaration and function.linkage == ll.Linkage.external:
                function.name = f"{function.name}_l{number}"
        machine = target.create_target_machine(cpu=cpu, features="", opt=3, reloc="pic", codemodel="default")
        _optimise(module, machine)
        path.with_name(f"{path.stem}_l{number}.o").write_bytes(machine.emit_object(module))


def _optimise(module: Any, machine: Any) -> None:
    """LLVM's own pipeline, once: numba runs it twice for the sake of reference counts, of which there are none here."""
    import llvmlite.binding as ll

    options = ll.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = ll.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


# -- the extension module ----------------------------------------------------------------------------------------------


def host_level() -> str:
    """The level of this machine."""
    levels = LEVELS.get(platform.machine())
    if levels is None:
        raise NotAhead(f"no level is known for {platform.machine()}")
    if len(levels) == 1:
        return levels[0]
    import llvmlite.binding as ll

    features = ll.get_host_cpu_features()
    can = all(features.get(name) for name in ("avx2", "fma", "bmi2"))
    return levels[-1] if can else levels[0]


def compiler() -> list[str]:
    """The command of the C compiler, or a `NotAhead`."""
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    for words in (command, ["cc"], ["gcc"], ["clang"]):
        if shutil.which(words[0]):
            return words
    raise NotAhead("no C compiler was found")


def _table(entries: list[dict[str, str]], levels: list[str]) -> str:
    """The list of kernels as C."""
    last = len(levels) - 1
    lines = ["#include <stddef.h>", "#include <stdint.h>"]
    for item in entries:
        lines += [f"int32_t {item['symbol']}_l{i}(void **, void **, int64_t);" for i in range(len(levels))]
    lines += [
        "typedef int32_t (*kernel)(void **, void **, int64_t);",
        "typedef struct { const char *name, *fingerprint, *spec; kernel level[2]; } entry;",
        "const entry semibandit_entries[] = {",
    ]
    for item in entries:
        symbol = item["symbol"]
        text = ", ".join(f'"{item[key]}"' for key in ("name", "fingerprint", "spec"))
        lines.append(f"{{{text}, {{{symbol}_l0, {symbol}_l{last}}}}},")
    names = [f'"{level}"' for level in levels] + ["NULL"]
    lines += ["{NULL, NULL, NULL, {NULL, NULL}}};"]
    lines += [f"const char *const semibandit_levels[2] = {{{names[0]}, {names[1]}}};"]
    lines += [f'const char semibandit_sources[] = "{sources.all_sources()}";']
    return "\n".join(lines) + "\n"


def build(out: Path, portable: bool = False, jobs: int = 0) -> Path:
    """Make the extension module in the folder `out`; a few minutes. `jobs` processes (0: as many as cores, at most 4).

    Raises
    ------
    NotAhead
        When there is no C compiler, or the machine is of a kind that is not known.
    """
    cc = compiler()
    levels = list(LEVELS[platform.machine()]) if portable and host_level() else [host_level()]
    jobs = jobs or min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2, 4)
    source = str(_HERE.parent.parent)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")])),
            # What training itself runs need not be fast: machine code is made once more, below.
            "NUMBA_OPT": "0",
            "SEMIBANDIT_JIT": "1",
            "SEMIBANDIT_QUIET": "1",
        }
        command = [sys.executable, "-m", __spec__.name, "--compile", "--jobs", str(jobs), "--out", scratch]
        if subprocess.call([*command, *levels], env=environment):
            raise RuntimeError("kernels did not compile; see above")
        entries: dict[tuple[str, str], dict[str, str]] = {}
        for part in sorted(work.glob("part*.json")):
            for item in json.loads(part.read_text()):
                entries.setdefault((item["name"], item["spec"]), item)
        listed = [entries[key] for key in sorted(entries)]
        (work / "entries.c").write_text(_table(listed, levels))
        made = work / "_native.abi3.so"
        extra = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-Wl,--gc-sections", "-s"]
        command = [
            *cc,
            "-O2",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            f"-I{sysconfig.get_paths()['include']}",
            "-o",
            str(made),
        ]
        command += [str(_HERE / "native.c"), str(work / "entries.c")]
        command += [str(path) for path in sorted(work.glob("part*.o"))]
        subprocess.check_call([*command, *extra, "-lm"])
        # A symbol that nobody defines shows when the module is loaded, not when it is linked.
        load = "import importlib.util as u; s = u.spec_from_file_location('_native', {!r}); u.module_from_spec(s)"
        subprocess.check_call([sys.executable, "-c", load.format(str(made))])
        out.mkdir(parents=True, exist_ok=True)
        final = out / made.name
        temporary = out / f".{made.name}.{os.getpid()}"
        shutil.copyfile(made, temporary)
        os.replace(temporary, final)
    print(f"{len(listed)} kernels ahead of time for {', '.join(levels)}: {final.stat().st_size:,} bytes")
    return final


def is_current(out: Path, portable: bool) -> bool:
    """Whether the module in `out` was made of the present sources, for the levels asked for."""
    code = (
        "import importlib.util as u; s = u.spec_from_file_location('_native', {!r}); m = u.module_from_spec(s); "
        "print(m.sources, *m.levels)"
    )
    made = out / "_native.abi3.so"
    if not made.is_file():
        return False
    found = subprocess.run([sys.executable, "-c", code.format(str(made))], capture_output=True, text=True)
    levels = LEVELS[platform.machine()] if portable else (host_level(),)
    return found.stdout.split() == [sources.all_sources(), *levels]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=_HERE)
    parser.add_argument("--portable", action="store_true")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--if-needed", action="store_true", help="only if there is none of these sources")
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("levels", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.compile:
        compile_all(given.jobs, given.levels, given.out)
        return
    try:
        if given.if_needed and is_current(given.out, given.portable):
            return
        build(given.out, given.portable, given.jobs)
    except NotAhead as reason:
        print(f"kernels are not compiled ahead of time: {reason}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
