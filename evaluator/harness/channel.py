"""The sockets between the supervisor and what runs inside a sandbox."""

from __future__ import annotations

import socket
from contextlib import suppress

_SO_PASSRIGHTS = 83


def channel() -> tuple[socket.socket, socket.socket]:
    """Two ends of a connection that keeps messages apart. The first is ours and takes no descriptors.

    Nobody asks for them, so the kernel would close them on arrival, in our name: and to close a socket can take as
    long as its owner wished. Linux 6.16 refuses them; before, it is the filter of system calls that nobody can wish.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with suppress(OSError):
        ours.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)
    return ours, theirs
