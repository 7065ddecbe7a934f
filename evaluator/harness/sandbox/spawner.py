"""Start processes from one thread that lives as long as this process.

``--die-with-parent`` asks the kernel for a signal at the death of the parent *thread*, so a sandbox started
from a pool thread or a request thread would be killed when that thread ends. All sandboxes are therefore
spawned by one thread that never ends; ``Sandbox.start`` may be called from any thread.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future

SPAWN_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
"""The environment of bubblewrap itself; the job gets its own."""

_Request = tuple[Future["subprocess.Popen[bytes]"], Sequence[str], Sequence[int]]
_guard = threading.Lock()
_running: dict[int, queue.SimpleQueue[_Request]] = {}


def _serve(requests: queue.SimpleQueue[_Request]) -> None:
    while True:
        future, argv, pass_fds = requests.get()
        try:
            future.set_result(
                subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    pass_fds=pass_fds,
                    cwd="/",
                    env=SPAWN_ENV,
                    start_new_session=True,
                )
            )
        except BaseException as error:  # noqa: BLE001 (raised again where start() waits)
            future.set_exception(error)


def spawn(argv: Sequence[str], pass_fds: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start ``argv`` in a session of its own, with nothing inherited but ``pass_fds``; its output streams are pipes."""
    with _guard:
        # A forked child has the table but not the thread: the key tells them apart.
        requests = _running.get(os.getpid())
        if requests is None:
            requests = _running[os.getpid()] = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(requests,), name="sandbox-spawner", daemon=True).start()
    future: Future[subprocess.Popen[bytes]] = Future()
    requests.put((future, argv, pass_fds))
    return future.result()
