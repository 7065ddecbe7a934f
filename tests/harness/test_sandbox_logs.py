"""What a job prints: kept within bounds, read without holding the job up, safe to show."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.harness.sandbox import CappedLog, Sandbox
from evaluator.harness.sandbox.logs import HEAD_BYTES, TAIL_BYTES, clean_text, drop_noise

from .sandboxes import needs_bubblewrap, python_spec


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain\ttext\n", "plain\ttext\n"),
        ("žluťoučký 🐎".encode(), "žluťoučký 🐎"),
        (b"bad \xff\xfe byte", "bad \ufffd\ufffd byte"),
        (b"\x1b[31;1mred\x1b[0m", "red"),
        (b"\x1b[2J\x1b[Hcleared", "cleared"),
        (b"\x1b[?25l\x1b[38:2:1:2:3mx", "x"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bP+q\x1b\\x", "x"),
        (b"\x1b]0;never ended\nnext line", "\nnext line"),
        ("\x9b31mred \x85next".encode(), "red next"),
        (b"\x1b(Bx\x1b7y\x1bcz", "xyz"),
        (b"a\rb\r\nc", "a\nb\nc"),
        (b"nul\0bell\x07back\x08del\x7f", "nulbellbackdel"),
        ("user\u202etxt.exe\u2066".encode(), "usertxt.exe"),
        ("in\u200bvis\u200dib\ufeffle \u2060letters\u00ad".encode(), "invisible letters"),
        (b"\x1b", ""),
        (b"\x1b[", ""),
        (b"<script>", "<script>"),
    ],
)
def test_text_is_cleaned(raw: bytes, shown: str) -> None:
    assert clean_text(raw) == shown


@given(st.binary(max_size=300))
def test_no_control_survives(raw: bytes) -> None:
    text = clean_text(raw)
    assert not [char for char in text if char not in "\n\t" and (char < " " or "\x7f" <= char <= "\x9f")]


@given(st.text(st.characters(min_codepoint=0xA0, max_codepoint=0x5FF, exclude_characters="\u00ad\u061c")))
def test_honest_text_is_untouched(text: str) -> None:
    assert clean_text(text.encode()) == text


def test_noise_is_dropped_and_the_rest_stays() -> None:
    text = (
        "before\n[W1129 socket.cpp:764] [c10d] The hostname of the client socket cannot be retrieved. err=-3\n"
        "my Gloo hostname is fine\n[Gloo] Rank 0 is connected to 3 peer ranks. Expected number is 3\n"
        "No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'\nafter"
    )
    assert drop_noise(text) == "before\nmy Gloo hostname is fine\nafter"


def fill(log: CappedLog, name: str, content: bytes) -> None:
    """Write ``content`` to a new pipe of the log and end it."""
    read, write = os.pipe()
    log.add(name, read)
    os.close(read)
    with open(write, "wb", buffering=0) as file:
        rest = memoryview(content)
        while rest:
            rest = rest[file.write(rest) or 0 :]
    assert log.wait(10)


def test_short_streams_are_whole_and_apart() -> None:
    with CappedLog() as log:
        fill(log, "rank 0", b"one\n")
        fill(log, "rank 1", b"two\n")
        fill(log, "rank 0", b"three\n")
        found = log.result()
    assert {name: stream.text for name, stream in found.items()} == {
        "rank 0": "one\nthree\n",
        "rank 1": "two\n",
    }
    assert found["rank 0"].total_bytes == 10
    assert not found["rank 0"].truncated


@pytest.mark.parametrize(
    ("prefix", "shown"), [("/home/somebody/py", "<python>/lib/x.py\n"), ("/usr", "/usr/lib/x.py\n")]
)
def test_where_the_host_keeps_its_python_is_not_told(
    monkeypatch: pytest.MonkeyPatch, prefix: str, shown: str
) -> None:
    monkeypatch.setattr(sys, "base_prefix", prefix)
    with CappedLog() as log:
        fill(log, "rank 0", f"{prefix}/lib/x.py\n".encode())
        assert log.result()["rank 0"].text == shown


@pytest.mark.parametrize("extra", [-1, 0, 1, 5, HEAD_BYTES * 3])
def test_head_and_tail_of_a_long_stream(extra: int) -> None:
    size = HEAD_BYTES + TAIL_BYTES + extra
    content = bytes(97 + index % 26 for index in range(size))
    with CappedLog() as log:
        fill(log, "x", content)
        stream = log.result()["x"]
    assert stream.total_bytes == size
    assert stream.truncated == (extra > 0)
    if extra > 0:
        gap = f"\n[... {extra} bytes left out ...]\n".encode()
        assert stream.text.encode() == content[:HEAD_BYTES] + gap + content[-TAIL_BYTES:]
    else:
        assert stream.text.encode() == content


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_cut_inside_a_character_leaves_no_rubbish(shift: int) -> None:
    content = b"x" * shift + "🐎".encode() * 100_000
    with CappedLog() as log:
        fill(log, "x", content)
        text = log.result()["x"].text
    assert "\ufffd" not in text
    assert set(text.replace("bytes left out", "")) <= set("x🐎[.] \n0123456789")


def test_nothing_is_lost_at_close() -> None:
    """Whether or not the thread had time to look at the pipe: hence often."""
    for _ in range(200):
        read, write = os.pipe()
        log = CappedLog()
        log.add("x", read)
        os.close(read)
        os.write(write, b"last words")
        log.close()
        log.close()
        os.close(write)
        assert log.result()["x"].text == "last words"


def test_close_comes_back_while_a_writer_floods() -> None:
    read, write = os.pipe()
    flood = subprocess.Popen([sys.executable, "-c", "while True: print('x' * 5000)"], stdout=write)
    os.close(write)
    try:
        log = CappedLog()
        log.add("x", read)
        os.close(read)
        start = time.monotonic()
        assert not log.wait(0.2)
        log.close()
        assert time.monotonic() - start < 5
        assert log.result()["x"].truncated
    finally:
        flood.kill()
        flood.wait()


def test_add_after_close_is_refused() -> None:
    log = CappedLog()
    log.close()
    read, write = os.pipe()
    with pytest.raises(ValueError, match="closed"):
        log.add("x", read)
    os.close(read)
    os.close(write)


@pytest.mark.serial
def test_flood_costs_little() -> None:
    read, write = os.pipe()
    log = CappedLog()
    log.add("x", read)
    os.close(read)
    # Another process writes, so that the figure is the reader's alone.
    code = "import os\nblock = b'y' * (1 << 20)\nfor _ in range(60): os.write(1, block)"
    before = time.process_time()
    flood = subprocess.Popen([sys.executable, "-c", code], stdout=write)
    os.close(write)
    assert flood.wait(60) == 0
    assert log.wait(10)
    cost = time.process_time() - before
    log.close()
    assert log.result()["x"].total_bytes == 60 << 20
    assert cost < 1.0


@needs_bubblewrap
def test_job_streams_are_collected() -> None:
    code = "import sys; print('out \\x1b[1mbold'); print('err', file=sys.stderr)"
    threads = threading.active_count()
    with CappedLog() as log:
        box = Sandbox(python_spec(code))
        box.start()
        box.collect(log, "job ")
        assert log.wait(30)
        box.kill()
        found = log.result()
    assert {name: stream.text for name, stream in found.items()} == {
        "job stdout": "out bold\n",
        "job stderr": "err\n",
    }
    assert threading.active_count() <= threads + 1  # the spawner stays, the log's thread does not
