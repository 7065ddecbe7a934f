"""What a host can do: reading its hierarchies, and the grade."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluator.harness.sandbox import host, host_grade, landlock
from evaluator.harness.sandbox.layout import (
    Layout,
    detect,
    host_layout,
    own_folder,
    read_mounts,
    read_own_groups,
)
from evaluator.harness.sandbox.names import clean, job_name, parse

from .sandboxes import needs_bubblewrap

HYBRID = """\
31 23 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
32 31 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
33 31 0:28 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory
34 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
35 31 0:30 / /sys/fs/cgroup/freezer rw,nosuid - cgroup cgroup rw,freezer
36 31 0:31 / /sys/fs/cgroup/systemd rw,nosuid - cgroup cgroup rw,xattr,name=systemd
"""


def test_mounts_of_a_hybrid_host() -> None:
    mounts = read_mounts(HYBRID)
    assert [(mount.version, mount.point.name, sorted(mount.controllers)) for mount in mounts] == [
        (2, "unified", []),
        (1, "memory", ["memory"]),
        (1, "cpu,cpuacct", ["cpu", "cpuacct"]),
        (1, "freezer", ["freezer"]),
        (1, "systemd", []),
    ]


def test_optional_fields_and_other_file_systems_are_passed_over() -> None:
    line = "36 35 0:31 / /sys/fs/cgroup rw,nosuid shared:9 master:1 - cgroup2 cgroup rw\n1 0 8:1 / / rw - ext4 a rw"
    assert [str(mount.point) for mount in read_mounts(line)] == ["/sys/fs/cgroup"]


def test_own_groups_of_both_kinds() -> None:
    text = "12:cpu,cpuacct:/a\n4:memory:/b\n1:name=systemd:/c\n0::/user.slice/x:y\n"
    assert read_own_groups(text) == {
        "cpu": "/a",
        "cpuacct": "/a",
        "memory": "/b",
        "name=systemd": "/c",
        "": "/user.slice/x:y",
    }


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [
        ("/", "/system.slice/worker.service", "system.slice/worker.service"),
        ("/docker/abc", "/docker/abc", ""),
        ("/docker/abc", "/docker/abc/inner", "inner"),
        ("/", "/gone", ""),
        ("/", "/system.slice/worker.service/pkb-supervisor", "system.slice/worker.service"),
    ],
)
def test_own_folder_below_the_mount(tmp_path: Path, root: str, path: str, expected: str) -> None:
    (tmp_path / "system.slice/worker.service/pkb-supervisor").mkdir(parents=True)
    (tmp_path / "inner").mkdir()
    mount = read_mounts(f"1 0 0:1 {root} {tmp_path} rw - cgroup2 cgroup2 rw")[0]
    assert own_folder(mount, path) == tmp_path / expected


def test_a_host_without_cgroups_has_an_empty_layout() -> None:
    assert detect("1 0 8:1 / / rw - ext4 /dev/a rw\n", "0::/\n") == Layout({})
    assert Layout({}).describe() == "none"


def test_a_read_only_hierarchy_is_no_place(tmp_path: Path) -> None:
    """A folder that is no cgroup file system offers none of the files, so nothing is promised."""
    text = f"1 0 0:1 / {tmp_path} rw - cgroup cgroup rw,memory,pids,freezer"
    assert detect(text, "1:memory,pids,freezer:/\n") == Layout({})
    assert list(tmp_path.iterdir()) == []


@needs_bubblewrap
def test_grade_follows_what_works_here() -> None:
    report = host_grade(fresh=True)
    missing = [*({"freeze", "memory", "pids"} - host_layout().places.keys())]
    missing += ["landlock"] if landlock.landlock_abi() < 2 else []
    assert report.grade == ("partial" if missing else "full")
    assert len(report.reasons) == len(missing)
    assert (report.fix is None) == (not missing)
    assert report.details["form"] == ("root" if os.geteuid() == 0 else "user")


@needs_bubblewrap
@pytest.mark.parametrize("version", [0, 1])
def test_a_kernel_without_landlock_is_no_full_isolation(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr(landlock, "landlock_abi", lambda: version)
    report = host._report()
    assert report.grade == "partial"
    assert "ranks of a job could read each other's memory" in report.reasons[-1]
    assert report.fix is not None


def test_without_bubblewrap_there_is_no_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "tool", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    report = host._report()
    assert report.grade == "none"
    assert report.reasons == ("bubblewrap is not installed",)
    assert report.fix is not None
    assert report.fix.endswith("apt-get install bubblewrap")


@needs_bubblewrap
def test_bubblewrap_that_fails_is_none_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_trial", lambda: "bwrap: No permissions to create new namespace")
    report = host._report()
    assert report.grade == "none"
    assert "No permissions" in report.reasons[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Refs_AB.12", "refs-ab-12"), ("../../x", "x"), ("", "x"), ("é", "x"), ("a" * 90, "a" * 40)],
)
def test_names_are_safe_as_folder_names(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_names_can_be_read_back() -> None:
    assert parse(job_name("host-1", "p7-ab", "any.name/x")) == ("host-1", "p7-ab")
    assert parse("pkb-probe-1234") is None
    assert parse("user.slice") is None
