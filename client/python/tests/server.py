"""The real server as a process, for tests."""

import contextlib
import os
import pathlib
import signal
import subprocess
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ.get("MAXSIMD_BINARY", str(ROOT / "build/release/bin/maxsimd"))


@contextlib.contextmanager
def running_server(*flags: str) -> Iterator[str]:
    """Starts the server on a free port, gives its address, and ends it by draining."""
    with subprocess.Popen(
        [BINARY, "--listen=127.0.0.1:0", "--drain-delay=0", "--backend=cpu", *flags],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        seen = []
        try:
            for line in process.stderr:
                seen.append(line)
                if "listening on " in line:
                    break
            else:
                raise RuntimeError("the server ended while starting:\n" + "".join(seen))
            yield seen[-1].split("listening on ")[1].strip()
        finally:
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
