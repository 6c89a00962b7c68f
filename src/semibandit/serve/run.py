"""From settings to a running server, and to its orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, getaddrinfo
from socket import socket as Socket
from typing import Any

import msgspec
import uvicorn

from semibandit.errors import ParameterError, SemibanditError
from semibandit.serve.app import App
from semibandit.serve.protocol import PatientProtocol, sweep
from semibandit.serve.restoring import Started
from semibandit.serve.routes import Routes
from semibandit.serve.service import Service
from semibandit.serve.settings import Settings, is_loopback
from semibandit.serve.stores import make_store
from semibandit.serve.tokens import Tokens


def tell(event: str, **facts: Any) -> None:
    """One line of JSON on the error stream."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1e3) % 1000:03d}Z"
    line = msgspec.json.encode({"at": stamp, "event": event, **facts}, enc_hook=str)
    sys.stderr.write(line.decode() + "\n")
    sys.stderr.flush()


class _Server(uvicorn.Server):
    """Leaves signals to `serve`: to be told to stop is no failure."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_app(settings: Settings, say: Callable[..., None] = tell) -> App:
    """The application of a service that is not started yet."""
    tokens = None if settings.server.tokens is None else Tokens.read(Path(settings.server.tokens))
    store, shelf = make_store(settings.server)
    service = Service(
        store,
        Path(settings.server.data),
        shelf=shelf,
        limits=settings.limits,
        upkeep=settings.upkeep,
        tell=say,
    )
    return App(
        service,
        tokens,
        Routes(service).application,
        log_requests=settings.server.log_requests,
        local_only=is_loopback(settings.server.host),
    )


def make_server(settings: Settings, app: Any) -> uvicorn.Server:
    """uvicorn on uvloop and httptools, with our patience."""
    config = uvicorn.Config(
        app,
        host=settings.server.host,
        port=settings.server.port,
        loop="uvloop",
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        date_header=False,
        timeout_keep_alive=int(max(1, settings.server.keep_alive)),
        timeout_graceful_shutdown=int(max(1, settings.server.drain)),
        backlog=1024,
    )
    return _Server(config)


async def serve(settings: Settings, greet: Callable[[Service, Started, str], None]) -> None:
    """Serve until a signal comes; raises what kept the service from starting."""
    app = make_app(settings)
    service, server = app.service, make_server(settings, app)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True
        service.pulse.close()  # streams end now: nobody has to wait for them

    service.gave_up = stop

    def heed_signals() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)

    heed_signals()
    # A thread that was waiting for the disk must not wait for Python's lock as long again.
    sys.setswitchinterval(0.0005)
    socket = listen(settings)
    address = _address(socket, settings)  # a server that is told to stop closes it
    listening = loop.create_task(server.serve(sockets=[socket]))
    patience = loop.create_task(sweep(server.server_state.connections, settings.server.request_timeout))
    try:
        starting = loop.create_task(service.start(settings.policies, standby=settings.server.standby))
        if settings.server.standby:
            await _listens(server, listening)
            service.tell("listening", address=address, standby_of=service.store.where)
        await asyncio.wait({listening, starting}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            started = starting.result()
            heed_signals()  # a cluster of shards that a thread connected to has put its own handlers there
            await _listens(server, listening)
            if server.started and not server.should_exit:
                _settle_memory()
                greet(service, started, address)
        else:
            starting.cancel()
            await asyncio.wait({starting})
        await listening
    finally:
        server.should_exit = True
        patience.cancel()
        with contextlib.suppress(SemibanditError):
            await listening
        await service.stop()
    if service.fatal is not None:
        raise service.fatal


def _settle_memory() -> None:
    """What is there stays: the collector need not look at it. Requests leave no cycles, so it may look rarely too."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _listens(server: uvicorn.Server, listening: asyncio.Task[None]) -> None:
    """Until it does, or never will."""
    while not server.started and not listening.done():
        await asyncio.sleep(0.005)


def listen(settings: Settings) -> Socket:
    """A socket at the address of the settings, or a `ParameterError`."""
    host, port = settings.server.host, settings.server.port
    try:
        family, kind, protocol, _, place = getaddrinfo(host, port, type=SOCK_STREAM)[0]
        made = Socket(family, kind, protocol)
        made.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        made.bind(place)
    except OSError as error:
        raise ParameterError(f"{host}:{port} cannot be listened on: {error.strerror}") from None
    made.setblocking(False)
    return made


def _address(socket: Socket, settings: Settings) -> str:
    host, port = settings.server.host, socket.getsockname()[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def run(settings: Settings, greet: Callable[[Service, Started, str], None]) -> None:
    """`serve` in an event loop of uvloop's."""
    import uvloop

    settings.check()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings, greet))
