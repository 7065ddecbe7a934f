"""From a lease through the judge to the stored result, in this process."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from django.core.files.base import ContentFile

from evaluator import services
from evaluator.harness.errors import JudgeFault
from evaluator.harness.version import PROTOCOL_VERSION
from evaluator.models import Attempt, Host
from evaluator.results import MAX_LOG, combine, log_text, storable
from evaluator.runner import fetch_source, run_lease
from evaluator.worker import Worker
from portal.submissions.models import Submission
from portal.submissions.states import State
from portal.submissions.transitions import move
from tests.evaluator import build
from tests.evaluator.fake_judge import FakeJudge


@dataclass
class Watch:
    stop: bool = False
    shutting_down: bool = False
    superseded: bool = False
    held: object = None

    def should_stop(self) -> bool:
        return self.stop

    def hold(self, token: object) -> None:
        self.held = token

    def drop(self) -> None:
        self.held = None


def lease_of(text: str, **fields: object) -> services.Lease:
    sent = build.submission(text, **fields)
    host = services.register_host(name="one", target=sent.target.slug)
    lease = services.lease(host=host)
    assert lease is not None
    return lease


def run(text: str, watch: Watch | None = None, **fields: object) -> bool:
    return run_lease(judge=FakeJudge("cpu4"), lease=lease_of(text, **fields), watch=watch or Watch())


@pytest.mark.django_db
def test_a_correct_file_is_stored_with_stages_and_log() -> None:
    assert run("# fake: correct 3.5\n")
    row, attempt = Submission.objects.get(), Attempt.objects.get()
    assert (row.state, row.verdict) == ("done", "correct")
    assert attempt.result["timing"]["speedup"] == 3.5
    assert [cell["size"] for cell in attempt.result["cells"]] == ["tiny"]
    assert attempt.result["protocol"] == "paper"
    assert "hello" in attempt.log
    assert attempt.harness_version == PROTOCOL_VERSION
    assert [entry["stage"] for entry in attempt.stages][-1] == "reporting"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("mode", "sizes"), [("score", ["default", "large"]), ("quick", ["default"]), ("check", ["default"])]
)
def test_score_runs_all_ranked_sizes_other_modes_the_first(mode: str, sizes: list[str]) -> None:
    run("# fake: correct\n", mode=mode, target=build.card_target())
    assert [cell["size"] for cell in Attempt.objects.get().result["cells"]] == sizes


@pytest.mark.django_db
def test_the_first_size_that_fails_decides_and_ends_it() -> None:
    run("# fake: incorrect\n", target=build.card_target())
    attempt = Attempt.objects.get()
    assert [cell["size"] for cell in attempt.result["cells"]] == ["default"]
    assert Submission.objects.get().verdict == "incorrect"


@pytest.mark.django_db
def test_cancelled_and_shut_down_differ() -> None:
    lease = lease_of("# fake: hold /proc/nowhere\n".replace("/proc/nowhere", "/dev/null"))
    move(submission_id=lease.submission.pk, to=State.CANCELLED)
    assert run_lease(judge=FakeJudge("cpu4"), lease=lease, watch=Watch(stop=True))
    assert Attempt.objects.get().exit_reason == "cancelled"
    other = build.submission("# fake: hold /dev/null\n")
    lease2 = services.lease(host=Host.objects.get())
    run_lease(judge=FakeJudge("cpu4"), lease=lease2, watch=Watch(stop=True, shutting_down=True))
    other.refresh_from_db()
    assert (other.state, Attempt.objects.get(submission=other).exit_reason) == ("queued", "released")


@pytest.mark.django_db
def test_a_size_that_does_not_fit_is_refused_and_not_tried_again() -> None:
    assert run("# fake: toolarge\n")
    row = Submission.objects.get()
    assert (row.state, row.code, row.message) == (
        "done",
        "size.too_large_for_target",
        "size large does not fit",
    )


@pytest.mark.django_db
def test_no_sandbox_names_the_way_out() -> None:
    assert run("# fake: nosandbox\n")
    row = Submission.objects.get()
    assert (row.verdict, row.code) == ("infra_error", "host.no_sandbox")
    assert "apt-get install bubblewrap" in row.message


@pytest.mark.django_db
def test_a_stored_file_that_changed_is_our_fault() -> None:
    lease = lease_of("# fake: correct\n")
    Submission.objects.update(source_sha256="0" * 64)
    lease.submission.refresh_from_db()
    with pytest.raises(JudgeFault, match="SHA-256"):
        run_lease(judge=FakeJudge("cpu4"), lease=lease, watch=Watch())


@pytest.mark.django_db
def test_zip_sources_keep_their_kind(tmp_path) -> None:
    """The kind is what the door found, whatever the author's own name of the file ends in."""
    sent = build.submission("zip bytes", source_name="kernel.py")
    sent.source.save("solution.zip", ContentFile(b"zip bytes"))
    assert fetch_source(sent, tmp_path).name == "solution.zip"
    plain = build.submission("def solution(x): return x\n", source_name="kernel.zip")
    assert fetch_source(plain, tmp_path).name == "solution.py"


@pytest.mark.django_db
def test_a_file_that_the_judge_cannot_open_is_told_once_and_no_hosts_fault() -> None:
    assert run("# fake: badfile\n")
    row = Submission.objects.get()
    assert (row.state, row.verdict, row.code) == ("done", "infra_error", "source.unreadable")
    assert Attempt.objects.count() == 1


def worker(*, healthy: bool) -> Worker:
    host = services.register_host(name="one", target="cpu4")
    return Worker(
        host=host, target="cpu4", judge=FakeJudge("cpu4"), pulse=Watch(), self_test=lambda _judge: healthy
    )


@pytest.mark.django_db
def test_drain_works_until_nothing_is_left_and_survives_faults() -> None:
    bad = build.submission("# fake: fault\n")
    good = [build.submission("# fake: correct\n") for _ in range(3)]
    assert worker(healthy=True).drain() == 6
    bad.refresh_from_db()
    assert bad.code == "runtime_error.host_fault_repeated"
    assert all(Submission.objects.get(pk=row.pk).verdict == "correct" for row in good)
    assert Attempt.objects.filter(finished_at=None).count() == 0


@pytest.mark.django_db
def test_what_waits_next_is_named_for_building_ahead() -> None:
    texts = [f"# fake: correct\n# {number}\n" for number in range(4)]
    for text in texts:
        build.submission(text)
    one = worker(healthy=True)

    assert one.drain() == 4
    assert [text for _, text in one.judge.prepared[:2]] == texts[1:3]
    assert {problem for problem, _ in one.judge.prepared} == {"allreduce"}


@pytest.mark.django_db
def test_a_source_that_cannot_be_read_ahead_stops_nothing() -> None:
    build.submission("# fake: correct\n")
    build.submission("# fake: correct\n", source_sha256="0" * 64)

    one = worker(healthy=True)
    one.drain()

    assert one.judge.prepared == []
    assert Submission.objects.filter(verdict="correct").count() == 1


@pytest.mark.django_db
def test_a_host_with_sick_cards_takes_nothing_and_comes_back_when_they_are_well() -> None:
    waiting = build.submission("# fake: correct\n")
    one = worker(healthy=True)
    one.judge.reasons = ["Xid 79 since the machine started: the card has fallen off the bus"]

    assert one.drain() == 0
    host = Host.objects.get()
    assert (host.state, host.reason[:16]) == ("quarantined", "Not fit: Xid 79 ")

    one.judge.reasons = []
    assert one.drain() == 1
    waiting.refresh_from_db()
    assert (waiting.verdict, Host.objects.get().state) == ("correct", "active")


@pytest.mark.django_db
def test_cards_that_fail_under_a_lease_are_held_against_nobody() -> None:
    build.submission("# fake: unfit\n")

    assert worker(healthy=True).drain() == 1

    attempt = Attempt.objects.get()
    assert (attempt.exit_reason, attempt.counted) == ("fault", False)
    assert Host.objects.get().reason == "Not fit: card 0 is slowed: hardware slowdown"
    assert Submission.objects.get().state == "queued"


@pytest.mark.django_db
def test_what_an_operator_took_out_of_service_stays_out() -> None:
    build.submission("# fake: correct\n")
    one = worker(healthy=True)
    services.quarantine(host=one.host, reason="new driver")

    assert one.drain() == 0
    assert Host.objects.get().reason == "new driver"


@pytest.mark.django_db
def test_an_unfit_host_leaves_service_and_blames_nobody() -> None:
    bad = build.submission("# fake: fault\n")
    assert worker(healthy=False).drain() == 1
    bad.refresh_from_db()
    assert bad.state == "queued"
    assert Host.objects.get().state == "quarantined"
    assert not Attempt.objects.get().counted


# --- what is stored is storable ---------------------------------------------------------------------


def test_storable_leaves_no_nan_nul_or_surrogate() -> None:
    got = storable(
        {"a": [math.nan, math.inf, 1.5, True, None], "b\x00": "x\x00\ud800y", "c": (1, 2), "d": object}
    )
    assert got["a"] == [None, None, 1.5, True, None]
    assert got["b␀"] == "x␀?y"
    assert got["c"] == [1, 2]
    assert isinstance(got["d"], str)


def test_long_strings_keep_head_and_tail() -> None:
    got = storable("a" * 20000 + "END")
    assert got.startswith("aaa")
    assert got.endswith("END")
    assert len(got) < 17000


def test_logs_of_all_ranks_fit_the_cap() -> None:
    got = log_text({f"rank {i}": {"head": "h" * 90000, "tail": "the end"} for i in range(4)})
    assert len(got) <= MAX_LOG + 2048
    assert all(f"── rank {i} ──" in got for i in range(4))
    assert log_text(None) == ""


def test_combine_takes_the_failing_cell() -> None:
    cells = [build.result(size="default"), build.result("timeout", size="large")]
    joined = combine(cells)
    assert (joined["verdict"], joined["size"]) == ("timeout", "large")
    assert [cell["size"] for cell in joined["cells"]] == ["default", "large"]
    assert "log" not in joined["cells"][0]
    with pytest.raises(ValueError, match="at least one"):
        combine([])
