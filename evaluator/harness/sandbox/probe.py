"""Runs inside a sandbox, as text after ``python -c``: says as JSON what it finds there. Imports nothing of ours.

Argument 1 is JSON: ``hidden`` (paths that must not be there), ``torch`` (whether to import it).
"""

import ctypes
import importlib.util
import json
import os
import re
import socket
import sys

UNSHARE_USER = 0x10000000
LANDLOCK_CREATE_RULESET, LANDLOCK_ASK_VERSION = 444, 1


def status_fields() -> dict[str, str]:
    """The fields of /proc/self/status."""
    with open("/proc/self/status") as file:
        return {key: value.strip() for key, _, value in (line.partition(":") for line in file)}


def torch_version(import_it: bool) -> str | None:
    """The version of torch as torch itself states it, None when it is not installed."""
    if import_it:
        import torch

        return str(torch.__version__)
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    with open(os.path.join(os.path.dirname(spec.origin), "version.py")) as file:
        found = re.search(r"^__version__ = ['\"]([^'\"]+)", file.read(), re.MULTILINE)
    return found[1] if found else None


def namespaces_open() -> bool:
    """Whether a new user namespace can be made from here."""
    return ctypes.CDLL(None, use_errno=True).unshare(UNSHARE_USER) == 0


def landlock_abi() -> int:
    """The version of Landlock that a job can use; 0 for none."""
    return max(0, ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_ASK_VERSION))


def writable_places() -> list[str]:
    """Mount points, and the root, in which a file can be made."""
    with open("/proc/self/mountinfo") as file:
        points = [line.split()[4] for line in file]
    return sorted({point for point in ["/", *points] if os.path.isdir(point) and can_write(point)})


def can_write(folder: str) -> bool:
    """Whether a file can be made in ``folder``."""
    path = os.path.join(folder, ".probe")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except OSError:
        return False
    os.unlink(path)
    return True


def first_environment() -> list[str]:
    """Names in the environment of the namespace's first process, which a plain user's job may read."""
    try:
        with open("/proc/1/environ", "rb") as file:
            return sorted(entry.partition(b"=")[0].decode() for entry in file.read().split(b"\0") if entry)
    except OSError:
        return []


def readable(path: str) -> bool:
    """Whether a file can be read, or a folder listed."""
    try:
        if os.path.isdir(path):
            os.listdir(path)
        else:
            with open(path, "rb") as file:
                file.read(1)
    except OSError:
        return False
    return True


def main() -> None:
    """Print the findings."""
    wanted = json.loads(sys.argv[1])
    status = status_fields()
    found = {
        "python": sys.version,
        "prefix": sys.prefix,
        "torch": torch_version(wanted["torch"]),
        "uids": sorted(set(os.getresuid() + os.getresgid())),
        "groups": sorted(set(os.getgroups())),
        "caps": {key: int(status[key], 16) for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
        "no_new_privs": status["NoNewPrivs"],
        "seccomp": status["Seccomp"],
        "interfaces": [name for _, name in socket.if_nameindex()],
        "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
        "environment": sorted(os.environ),
        "first_environment": first_environment(),
        "visible": [path for path in wanted["hidden"] if readable(path)],
        "writable": writable_places(),
        "namespaces_open": namespaces_open(),
        "landlock": landlock_abi(),
    }
    print(json.dumps(found))  # noqa: T201 (its answer)


if __name__ == "__main__":
    main()
