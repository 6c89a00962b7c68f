"""numba's dispatcher, changed to compile a tree of kernels once and not once a level.

numba makes a library of every kernel that another one calls: it links all that the kernel calls into it, optimises
that, wraps it for Python and for C, makes machine code of it and writes it to disk; then the caller does all this
again. Here a kernel that is called by kernels is only lowered to LLVM's language. What Python calls is linked with
everything below it and optimised, once.

Nothing of numba is changed: this is a dispatcher, a compiler pass and a library of our own. Other people's kernels in
the process are compiled as ever.
"""

from __future__ import annotations

import hashlib
import re
import sys
from typing import Any, ClassVar

import llvmlite.binding as ll
from numba.core import caching, codegen, compiler, event, funcdesc, sigutils, typing
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.environment import lookup_environment
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.typed_passes import NativeLowering

from semibandit.compiled import jit
from semibandit.compiled.generic import reached, tell_numba
from semibandit.compiled.handle import states_in
from semibandit.compiled.jit import Kernel, cache_directory, types
from semibandit.compiled.opened import Opened
from semibandit.compiled.sources import fingerprint

_ENVIRONMENT = "_ZN08NumbaEnv"


class _Key:
    """What numba knows the code of an inner kernel by, in place of a function that Python could call."""


class SplitLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """`light`: code of one kernel that waits to be linked. Otherwise it brings in all that its light ones need."""

    light = False

    def add_llvm_module(self, ll_module: Any) -> None:
        if not (self.light and jit.apart):
            super().add_llvm_module(ll_module)
            return
        # numba goes through every function here, with passes that do nothing before all is linked and optimised.
        ll_module.data_layout = self._codegen._data_layout
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        if self.light:
            self._finalized = True
            return
        self._linking_libraries = self._load_apart() if jit.apart else self.below()
        super().finalize()

    def address_apart(self, name: str) -> int:
        """Where a function of this light library is, which has no way in from Python: see `jit.apart`."""
        self._load()
        self._load_apart()
        return int(self._codegen._engine.get_function_address(name))

    def _load_apart(self) -> list[Any]:
        """Give the light libraries below to the process, to be called and not inlined; the others."""
        others = []
        for library in self.below():
            if getattr(library, "light", False):
                library._load()
            else:
                others.append(library)
        return others

    def _load(self) -> None:
        """Give a light library's code to the process by itself, once."""
        if self.__dict__.setdefault("_loaded_apart", False):
            return
        self._loaded_apart = True
        module = self._get_module_for_linking().clone()
        for function in module.functions:
            if not function.is_declaration:
                function.linkage = "external"
        self._codegen._add_module(module)

    def below(self) -> list[Any]:
        """All libraries to be linked, each once and before all that it calls: LLVM drops what no one calls yet."""
        seen: set[Any] = set()
        ordered: list[Any] = []

        def walk(library: Any) -> None:
            if library not in seen:
                seen.add(library)
                if getattr(library, "light", False):
                    for other in library._linking_libraries:
                        walk(other)
                ordered.append(library)

        for library in self._linking_libraries:
            walk(library)
        return ordered[::-1]

    def parts(self) -> list[Any]:
        """A light library and all below it but numba's run time."""
        return [library for library in (self, *self.below()) if library is not rtsys.library]

    def whole(self) -> Any:
        """A light library's code with that of all below it but numba's run time."""
        module = self._get_module_for_linking().clone()
        for library in self.parts()[1:]:
            module.link_in(library._get_module_for_linking(), preserve=True)
        return module


def _environments(module: Any) -> list[Any]:
    names = (variable.name for variable in module.global_variables)
    found = (lookup_environment(name) for name in names if name.startswith(_ENVIRONMENT))
    return [environment for environment in found if environment is not None]


@register_pass(mutates_CFG=True, analysis_only=False)
class SplitLowering(LoweringPass):  # type: ignore[misc]
    """numba's `NativeLowering` without wrappers and machine code."""

    _name = "semibandit_split_lowering"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        context, flags = state.targetctx, state.flags
        library = SplitLibrary(context.codegen(), state.func_id.func_qualname)
        library.light = True
        library._reload_init.update(state.reload_init)
        state.library = library
        description = funcdesc.PythonFunctionDescriptor.from_specialized_function(
            state.func_ir,
            state.typemap,
            state.return_type,
            state.calltypes,
            mangler=context.mangler,
            inline=flags.forceinline,
            noalias=flags.noalias,
            abi_tags=[flags.get_mangle_string()],
        )
        with context.push_code_library(library):
            lower = Lower(context, library, description, state.func_ir, metadata=state.metadata)
            lower.lower()
        library.finalize()
        key = _Key()
        context.insert_user_function(key, description, [library])
        state["cr"] = compiler._LowerResult(description, lower.call_helper, cfunc=key, env=lower.env)
        return True


class SplitCompiler(compiler.CompilerBase):  # type: ignore[misc]
    """numba's pipeline with `SplitLowering`."""

    def define_pipelines(self) -> list[Any]:
        pipeline = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (SplitLowering if step is NativeLowering else step, why) for step, why in pipeline.passes
        ]
        pipeline._finalized = False
        pipeline.finalize()
        return [pipeline]


class _Locator(caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """Files of a kernel lie in one folder a module; which sources they are of is in the key (`_Cache`)."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        self._py_file = py_file
        self._lineno = 0
        self._cache_path = str(cache_directory() / py_func.__module__.removeprefix("semibandit."))

    def get_source_stamp(self) -> str:
        return ""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        return cls(py_func, py_file)


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes: ClassVar[list[Any]] = [_Locator]

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        # Files of its own for every kernel, wherever in its module it stands; names may be longer than a file's.
        digest = hashlib.sha256(fullname.encode()).hexdigest()[:12]
        return f"{re.sub(r'[^0-9A-Za-z_]', '_', fullname)[:100]}-{digest}"


def _state_classes(kind: Any) -> set[type]:
    """Classes of the states in an argument of this type."""
    if isinstance(kind, Opened):
        return states_in(kind.instance_class)
    found = {kind.instance_class} if isinstance(kind, types.BaseNamedTuple) else set()
    return found.union(*(_state_classes(part) for part in getattr(kind, "types", ())))


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    """Keeps a kernel for Python as machine code, as numba does, and one for kernels as LLVM's code."""

    _impl_class = _Implementation

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.py_func)
        self._kernel = kernel

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return str(sig), codegen.magic_tuple(), self._kernel.name, self._kernel.fingerprint

    def load_overload(self, sig: Any, context: Any) -> Any:
        """As numba's, but code that is found is loaded without half a second of numba's declarations."""
        rtsys.initialize(context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, context)

    def _inner_key(self, args: Any, codegen: Any) -> Any:
        """As `_index_key`, with what generic functions stand for on the states in `args`; None if it cannot be kept.

        A class that was made on the fly would come back from disk as another one.
        """
        classes = set().union(*(_state_classes(kind) for kind in args))
        if not all(
            getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls for cls in classes
        ):
            return None
        depends = self._kernel.depends() | {cls.__module__ for cls in classes}
        called = reached(self._kernel, classes)
        sources_hash = fingerprint(frozenset(depends.union(*(part.depends() for part in called))))
        return "inner", *self._index_key(args, codegen), sources_hash

    def load_inner(self, args: Any, context: Any) -> Any:
        context.refresh()
        key = self._inner_key(args, context.codegen())
        data = None if key is None else self._cache_file.load(key)
        if data is None:
            return None
        name, code, description, environment, signature, environments = data
        library = SplitLibrary(context.codegen(), name)
        library.light = True
        library._final_module = ll.parse_bitcode(code)
        library._keep = environments
        library.add_linking_library(rtsys.library)
        library.finalize()
        key = _Key()
        context.insert_user_function(key, description, [library])
        return compiler.compile_result(
            typing_context=context.typing_context,
            target_context=context,
            entry_point=key,
            type_annotation="",
            library=library,
            signature=signature,
            objectmode=False,
            lifted=(),
            fndesc=description,
            environment=environment,
            reload_init=[],
            metadata={},
        )

    def save_inner(self, args: Any, result: Any) -> None:
        library, description = result.library, result.fndesc
        key = self._inner_key(args, result.codegen)
        if key is None:
            return
        module = library.whole()
        if any(v.name.startswith("numba.dynamic.globals") for v in module.global_variables):
            return
        description.typemap = description.calltypes = None
        data = (
            library.name,
            module.as_bitcode(),
            description,
            result.environment,
            result.signature,
            tuple(e for e in _environments(module) if e.can_cache()),
        )
        self._impl.locator.ensure_cache_path()
        with self._guard_against_spurious_io_errors():
            self._cache_file.save(key, data)


class SplitDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A kernel: `overloads` holds what Python may call, `inner` what kernels may."""

    kernel: Kernel

    def __init__(self, py_func: Any, targetoptions: Any) -> None:
        super().__init__(py_func, {}, targetoptions, pipeline_class=SplitCompiler)
        self.inner: dict[Any, Any] = {}

    # -- for kernels -----------------------------------------------------------------------------------

    def get_call_template(self, args: Any, kws: Any) -> Any:
        pysig, args = self._compiler.fold_argument_types(args, kws)
        self.compile_inner(tuple(args))
        name = self.py_func.__name__
        signatures = [result.signature for result in self.inner.values()]
        template = typing.make_concrete_template(f"CallTemplate({name})", key=name, signatures=signatures)
        return template, pysig, args, {}

    def get_overload(self, sig: Any) -> Any:
        args, _ = sigutils.normalize_signature(sig)
        return self.inner[tuple(args)].entry_point

    def compile_inner(self, args: Any) -> Any:
        """The kernel lowered for arguments of these types, from disk or now."""
        with global_compiler_lock:
            result = self.inner.get(args)
            if result is None and isinstance(self._cache, _Cache):
                result = self._cache.load_inner(args, self.targetctx)
            if result is None:
                tell_numba()
                with self._compiling_counter:
                    details = {"dispatcher": self, "args": args, "return_type": None}
                    with event.trigger_event("numba:compile", data=details):
                        result = self._compiler.compile(args, None)
                if isinstance(self._cache, _Cache):
                    self._cache.save_inner(args, result)
            self.inner[args] = result
            return result

    # -- for Python ------------------------------------------------------------------------------------

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock:
            args, _ = sigutils.normalize_signature(sig)
            args = tuple(args)
            result = self.overloads.get(args)
            if result is None:
                result = self._cache.load_overload(sig, self.targetctx)
                if result is None:
                    self._cache_misses[sig] += 1
                    result = self._promote(self.compile_inner(args))
                    self.add_overload(result)
                    self._cache.save_overload(sig, result)
                else:
                    self._cache_hits[sig] += 1
                    self.add_overload(result)
            return result.entry_point

    def _promote(self, result: Any) -> Any:
        """The kernel as Python calls it: wrapped, linked with all it needs, optimised, and made machine code."""
        context, description = result.target_context, result.fndesc
        flags = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        library = SplitLibrary(context.codegen(), result.library.name)
        library.enable_object_caching()
        library._reload_init.update(result.library._reload_init)
        module = result.library._final_module.clone()
        module.get_function(description.llvm_func_name).linkage = "external"
        library._final_module.link_in(module)
        for other in result.library._linking_libraries:
            library.add_linking_library(other)
        with compiler.ConfigStack().enter(flags), context.push_code_library(library):
            context.create_cpython_wrapper(
                library, description, result.environment, None, release_gil=flags.release_gil
            )
        function = context.get_executable(library, description, result.environment)
        for environment in _environments(library._final_module):
            library.codegen.set_env(environment.env_name, environment)
        return result._replace(library=library, entry_point=function)


def make_dispatcher(kernel: Kernel) -> SplitDispatcher:
    """`numba.njit` for kernels that are compiled as told above."""
    options = {"nopython": True, "boundscheck": None, **kernel.options}
    made = SplitDispatcher(kernel.py_func, options)
    made.kernel = kernel
    if jit.keeps and kernel.fingerprint:
        made._cache = _Cache(kernel)
    return made
