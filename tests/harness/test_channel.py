"""What may come through a socket of the supervisor's."""

from __future__ import annotations

import os
import platform
import socket

import pytest

from evaluator.harness.channel import channel

LINUX = tuple(int(part) for part in platform.release().split(".")[:2])


@pytest.mark.skipif(LINUX < (6, 16), reason="the kernel has no such option")
def test_no_descriptor_can_be_sent_to_the_supervisor() -> None:
    ours, theirs = channel()
    with ours, theirs, open(os.devnull) as file:
        with pytest.raises(PermissionError):
            socket.send_fds(theirs, [b"done"], [file.fileno()])
        theirs.send(b"done")
        assert ours.recv(10) == b"done"


def test_the_supervisor_can_send_descriptors() -> None:
    ours, theirs = channel()
    with ours, theirs, open(os.devnull) as file:
        socket.send_fds(ours, [b"take"], [file.fileno()])
        data, taken, _, _ = socket.recv_fds(theirs, 10, 1)
        os.close(taken[0])
        assert (data, len(taken)) == (b"take", 1)
