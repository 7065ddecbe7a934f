"""What a job is, sees and reaches."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from evaluator.harness.sandbox import Sandbox, SandboxSpec, mounts, python_inside, self_check
from evaluator.harness.sandbox.selfcheck import hidden_paths, judge_facts
from evaluator.harness.sandbox.uids import uid_range

from .sandboxes import ENV, needs_bubblewrap, needs_root, python_spec, run_inside

pytestmark = needs_bubblewrap


def test_self_check_finds_nothing_wrong() -> None:
    check = self_check(fresh=True)
    assert check.problems == ()
    assert check.facts["python"] == sys.version
    assert check.facts["interfaces"] == ["lo"]


@pytest.mark.slow
def test_torch_inside_is_torch_outside() -> None:
    check = self_check(import_torch=True)
    assert check.ok
    assert check.facts["torch"].startswith("2.")


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("python", "3.6.1", "another Python"),
        ("prefix", "/usr", "another prefix"),
        ("torch", "1.0", "another torch"),
        ("uids", [0], "wrong identity"),
        ("caps", {"CapInh": 0, "CapPrm": 0, "CapEff": 1, "CapBnd": 0, "CapAmb": 0}, "capabilities left"),
        ("no_new_privs", "0", "new privileges"),
        ("seccomp", "1", "seccomp mode"),
        ("interfaces", ["lo", "eth0"], "network interfaces"),
        ("processes", [1, 2, 3, 4, 5], "processes visible"),
        ("environment", ["DJANGO_SECRET_KEY"], "environment carried in"),
        ("first_environment", ["DJANGO_SECRET_KEY"], "environment carried in"),
        ("visible", ["/etc/shadow"], "readable inside"),
        ("writable", ["/"], "writable inside"),
        ("namespaces_open", True, "new namespaces"),
        ("landlock", -1, "Landlock"),
    ],
)
def test_self_check_tells_each_fault(key: str, value: object, word: str) -> None:
    facts = self_check().facts
    uid = facts["uids"][0] if os.geteuid() == 0 else None
    problems = judge_facts({**facts, key: value}, uid, ENV)
    assert problems
    assert any(word in problem for problem in problems)


def test_hidden_paths_exist_outside() -> None:
    """The check above proves nothing if the paths it tries are nowhere."""
    assert sum(os.path.exists(path) for path in hidden_paths()) >= 5


@needs_root
def test_live_jobs_have_different_uids_of_the_range() -> None:
    code = "import os,sys; print(os.getuid(), os.getgid(), os.getgroups(), flush=True); sys.stdin.read()"
    with Sandbox(python_spec(code)) as one, Sandbox(python_spec(code)) as two:
        assert one.uid != two.uid
        for box in (one, two):
            assert box.uid in uid_range()
            assert box.communicate(30)[0].decode().split() == [str(box.uid), str(box.uid), "[]"]


def test_environment_is_exactly_the_given_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "secret")
    monkeypatch.setenv("LD_PRELOAD", "")
    spec = SandboxSpec(argv=["/usr/bin/env"], env={"PATH": "/usr/bin", "EMPTY": "", "TEXT": "a b=\nc"})
    with Sandbox(spec) as box:
        out, _ = box.communicate(30)
    assert sorted(out.decode().split("\n")) == sorted(
        ["PATH=/usr/bin", "EMPTY=", "TEXT=a b=", "c", "PWD=/home/rank", ""]
    )


def test_options_do_not_show_in_the_process_list() -> None:
    spec = python_spec("import sys; print(1, flush=True); sys.stdout.close(); import time; time.sleep(60)")
    with Sandbox(spec) as box:
        assert box.stdout.readline() == b"1\n"
        lines = [Path("/proc", str(pid), "cmdline").read_bytes() for pid in box.pids()]
        assert len(lines) == 3
        assert not any(b"--ro-bind" in line for line in lines)


def test_network_is_loopback_and_nothing_else() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    code = """
import errno, json, socket, sys
said = {"names": [name for _, name in socket.if_nameindex()]}
inner = socket.create_server(("127.0.0.1", 0))
socket.create_connection(inner.getsockname(), 5).close()
said["own name"] = socket.gethostbyname(socket.gethostname())
for target in [("192.0.2.1", 80), ("127.0.0.1", int(sys.argv[1]))]:
    try:
        socket.create_connection(target, 2)
    except OSError as error:
        said[target[0]] = errno.errorcode[error.errno]
print(json.dumps(said))
"""
    with server:
        _, out, err = run_inside(code, str(server.getsockname()[1]))
    assert err == ""
    assert json.loads(out) == {
        "names": ["lo"],
        "own name": "127.0.0.1",
        "192.0.2.1": "ENETUNREACH",
        "127.0.0.1": "ECONNREFUSED",
    }


def test_abstract_socket_of_the_host_is_out_of_reach() -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0pkb-test-abstract")
        server.listen()
        code = "import socket; s=socket.socket(socket.AF_UNIX); s.connect('\\0pkb-test-abstract')"
        _, _, err = run_inside(code)
    assert "ConnectionRefusedError" in err


def test_bound_folder_is_there_and_read_only(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("hello")
    tmp_path.chmod(0o755)
    code = """
print(open("/opt/pkb/job/file.txt").read())
for path in ["/opt/pkb/job/new", "/opt/pkb/new", "/usr/new", "/new", "/etc/passwd", "/dev/new"]:
    try:
        open(path, "a"); print("wrote", path)
    except OSError: pass
"""
    status, out, err = run_inside(code, ro_binds={tmp_path: "/opt/pkb/job"})
    assert (status, out, err) == (0, "hello\n", "")


def test_passed_descriptors_keep_their_numbers_and_others_are_closed() -> None:
    read, write = os.pipe()
    secret = os.memfd_create("secret", 0)
    os.set_inheritable(secret, True)
    code = "import os,sys; os.write(int(sys.argv[1]), b'x'); print(sorted(map(int, os.listdir('/proc/self/fd'))))"
    try:
        with Sandbox(python_spec(code, str(write), pass_fds=(write,))) as box:
            os.close(write)
            out, err = box.communicate(30)
            # The end of the stream shows that bubblewrap's own processes hold no copy either.
            assert os.read(read, 10) == b"x"
            assert os.read(read, 10) == b""
    finally:
        os.close(read)
        os.close(secret)
    assert err == b""
    listing = write + 1 if write == 3 else 3
    assert json.loads(out) == sorted([0, 1, 2, write, listing])


def test_a_compiler_works_inside() -> None:
    code = """
import ctypes, glob, subprocess
open("/tmp/a.c", "w").write("#include <stdio.h>\\nint answer(void) { return 42; }\\n")
subprocess.run(["gcc", "-shared", "-fPIC", "-o", "/tmp/a.so", "/tmp/a.c"], check=True)
print(ctypes.CDLL("/tmp/a.so").answer())
print(len(glob.glob("/opt/pkb/venv/lib/python*/site-packages/torch/include/torch/extension.h")) or "system")
"""
    status, out, err = run_inside(code)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "42"
    if python_inside().startswith("/opt/pkb/venv"):
        assert out.splitlines()[1] == "1"


@pytest.mark.parametrize(
    ("checkout", "hidden"), [("/usr/src/app", True), ("/usr/local/pkb", True), ("/usrx", False)]
)
def test_checkout_below_usr_is_hidden(checkout: str, hidden: bool) -> None:
    tree = mounts._Tree()
    mounts._system(tree, Path(checkout))
    words = " ".join(tree.options)
    assert (f"--tmpfs {checkout} --remount-ro {checkout}" in words) == hidden
    assert words.startswith("--ro-bind /usr /usr")


def test_no_core_dump_and_no_priority() -> None:
    code = """
import resource
print(*resource.getrlimit(resource.RLIMIT_CORE), *resource.getrlimit(resource.RLIMIT_NICE),
      *resource.getrlimit(resource.RLIMIT_RTPRIO))
"""
    assert run_inside(code)[1].split() == ["1", "1", "0", "0", "0", "0"]


@pytest.mark.parametrize(
    "options",
    [
        {"argv": []},
        {"pass_fds": (1,)},
        {"tmp_bytes": 10},
        {"env": {"A=B": "x"}},
        {"env": {"A": "x\0y"}},
        {"ro_binds": {"/etc": "relative"}},
        {"ro_binds": {"/etc": "/opt/../etc"}},
    ],
)
def test_spec_refuses_nonsense(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        SandboxSpec(**{"argv": ["/bin/true"], **options})  # type: ignore[arg-type]
