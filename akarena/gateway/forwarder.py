"""Carries bytes from a loopback port to the gateway's socket, and runs the agent. In the agent's sandbox.

``python -I -S forwarder.py PORT SOCKET PROGRAM [ARGUMENT ...]``. Standard library only. It looks nothing up, reads
nothing of what it carries, and holds no secret. It ends with its program: with the same code, or 128 + the signal.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress

_PIECE_BYTES = 256 * 1024
_BACKLOG = 256
_PASSED_ON = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(_PIECE_BYTES):
        sink.write(piece)
        await sink.drain()
    sink.write_eof()


async def _carry(path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry one connection; each direction ends by itself."""
    other = None
    try:
        source, other = await asyncio.open_unix_connection(path)
        await asyncio.gather(_pump(reader, other), _pump(source, writer))
    except OSError:
        # One side is gone; an abort tells the other one that nothing more comes.
        writer.transport.abort()
    finally:
        for end in (writer, other):
            if end is not None:
                end.close()


async def _run(port: int, path: str, argv: list[str]) -> int:
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_carry(path, reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    await asyncio.start_server(accept, "127.0.0.1", port, backlog=_BACKLOG)
    try:
        child = await asyncio.create_subprocess_exec(*argv)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126
    loop = asyncio.get_running_loop()
    for name in _PASSED_ON:
        number = getattr(signal, name)
        loop.add_signal_handler(number, _pass_on, child, number)
    code = await child.wait()
    return code if code >= 0 else 128 - code


def _pass_on(child: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError):
        child.send_signal(number)


def main(arguments: list[str]) -> int:
    """Run the program in the arguments with the port open."""
    if len(arguments) < 3 or not arguments[0].isdecimal():
        print("usage: forwarder.py PORT SOCKET PROGRAM [ARGUMENT ...]", file=sys.stderr)
        return 2
    return asyncio.run(_run(int(arguments[0]), arguments[1], arguments[2:]))


if __name__ == "__main__":
    result = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Connections that are still open are not waited for.
    os._exit(result)
