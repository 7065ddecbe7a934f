"""The health gate, from outputs in the form of nvidia-smi 580 and of the kernel's log."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.harness import health, selftest
from evaluator.harness.health import FIELDS, Health, judge, read_cards, read_processes, read_xids, when_quiet
from problems.registry import load_target

SOUND = {
    "index": "0", "name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-aaaa",
    "pci.bus_id": "00000000:1B:00.0", "driver_version": "580.159.04", "pstate": "P0",
    "persistence_mode": "Enabled", "mig.mode.current": "Disabled", "temperature.gpu": "34", "clocks.sm": "1980",
    "clocks.max.sm": "1980", "clocks_throttle_reasons.active": "0x0000000000000001", "memory.used": "4",
    "ecc.errors.uncorrected.volatile.total": "0", "retired_pages.pending": "[N/A]", "remapped_rows.pending": "No",
    "remapped_rows.failure": "No",
}  # fmt: skip
LOG = """[    4.1] nvidia-nvlink: Nvlink Core is being initialized
[ 8111.2] NVRM: Xid (PCI:0000:1b:00): 31, pid=4711, name=python, Ch 00000008, MMU Fault
"""


def card(index: int = 0, **changed: str) -> str:
    row = {
        **SOUND,
        "index": str(index),
        "uuid": f"GPU-{index}",
        "pci.bus_id": f"00000000:{index + 26:02X}:00.0",
    }
    row |= changed
    return ", ".join(row[name] for name in FIELDS)


FOUR = "\n".join(card(index) for index in range(4)) + "\n"


def found(cards: str = FOUR, processes: str = "", log: str = LOG, **options: Any) -> Health:
    return judge(cards, processes, log, cards=range(4), **options)


def test_four_sound_cards_are_fit() -> None:
    health = found()

    assert health.reasons == []
    assert [row["index"] for row in health.cards] == [0, 1, 2, 3]
    assert health.cards[0] == {
        "index": 0, "name": "NVIDIA H100 80GB HBM3", "driver": "580.159.04", "pstate": "P0", "sm_mhz": 1980,
        "sm_max_mhz": 1980, "temperature_c": 34, "memory_used_mib": 4, "throttle": [],
    }  # fmt: skip
    assert "card 0 retired_pages.pending" in health.unread
    assert health.shown()["fit"] is True


@pytest.mark.parametrize(
    ("changed", "told", "lasting"),
    [
        ({"ecc.errors.uncorrected.volatile.total": "2"}, "2 uncorrected ECC errors", True),
        ({"remapped_rows.failure": "Yes"}, "remapping of a memory row failed", True),
        ({"remapped_rows.pending": "Yes"}, "wait to be remapped", True),
        ({"mig.mode.current": "Enabled"}, "divided (MIG)", True),
        ({"clocks_throttle_reasons.active": "0x0000000000000048"}, "hardware thermal slowdown", False),
        ({"clocks_throttle_reasons.active": "0x0000000000000020"}, "software thermal slowdown", False),
        ({"memory.used": "40960"}, "holds 40960 MiB", False),
    ],
)
def test_a_card_that_is_not_fit_is_named_with_its_reason(
    changed: dict[str, str], told: str, lasting: bool
) -> None:
    health = found("\n".join([card(0), card(1, **changed), card(2), card(3)]))

    reasons = health.lasting if lasting else health.passing
    assert any(told in reason and "card 1" in reason for reason in reasons), health
    assert bool(health.lasting) is lasting


@pytest.mark.parametrize("mask", ["0x0000000000000000", "0x0000000000000004", "0x0000000000000001", "[N/A]"])
def test_idle_and_power_cap_are_no_defects(mask: str) -> None:
    assert (
        found("\n".join(card(i, **{"clocks_throttle_reasons.active": mask}) for i in range(4))).reasons == []
    )


def test_a_foreign_process_is_told_and_our_own_is_not() -> None:
    text = "991, GPU-2, 512, python\n992, GPU-2, [N/A], /usr/bin/miner, v2\n993, GPU-other, 9, x\n"

    health = found(processes=text, own=[991])

    assert health.passing == ["another program computes on the card: /usr/bin/miner, v2 (pid 992)"]
    assert health.shown()["foreign"] == [{"memory_mib": None}]


def test_an_error_of_another_card_is_not_ours() -> None:
    log = LOG.replace("1b:00): 31", "9f:00): 79")

    assert read_xids(log) == [("0000:9f:00", 79)]
    assert found(log=log).reasons == []


def test_what_the_supervisor_keeps_on_a_card_is_no_reason() -> None:
    full = "\n".join(card(index, **{"memory.used": "12000"}) for index in range(4))

    assert len(found(full).passing) == 4
    assert found(full, own_mib=4000).reasons == []


@pytest.mark.parametrize("number", [48, 79, 95, 119])
def test_an_xid_of_the_card_lasts(number: int) -> None:
    log = LOG + f"[ 9000.0] NVRM: Xid (PCI:0000:1b:00): {number}, pid='<unknown>', name=<unknown>, gone\n"

    assert read_xids(log) == [("0000:1b:00", 31), ("0000:1b:00", number)]
    assert [reason.split(" since")[0] for reason in found(log=log).lasting] == [f"Xid {number}"]


def test_a_bad_pointer_of_some_program_is_no_defect() -> None:
    assert found(log=LOG).reasons == []


def test_a_missing_card_and_a_missing_driver() -> None:
    assert found(card(0) + "\n" + card(2)).lasting == ["the driver does not list card 1, 3"]
    assert "driver or card is gone" in judge(None, None, None, cards=[0]).lasting[0]
    unread = judge(FOUR, None, None, cards=range(4)).unread
    assert {"processes", "kernel log (Xid)"} <= set(unread)


def test_lines_that_are_no_rows_are_left_out() -> None:
    assert read_cards("No devices were found\n\n") == []
    assert read_processes("No running processes found\nx, y\n") == []


class Cards:
    """Answers one state after the other; counts how often it was asked."""

    def __init__(self, *states: Health) -> None:
        self.states, self.asked, self.rested = list(states), 0, 0.0

    def __call__(self, target: object) -> Health:
        self.asked += 1
        return self.states[min(self.asked, len(self.states)) - 1]

    def rest(self, seconds: float) -> None:
        self.rested += seconds


def quiet(cards: Cards) -> Health:
    return when_quiet(load_target("h200x1"), seen=cards, limit_s=10.0, rest=cards.rest)


def test_it_waits_for_what_passes_and_not_for_what_lasts() -> None:
    hot, sick = Health(passing=["hot"]), Health(lasting=["Xid 79"], passing=["hot"])
    assert quiet(passing := Cards(hot, hot, Health())).reasons == []
    assert (passing.asked, passing.rested) == (3, 4.0)
    assert quiet(lasting := Cards(sick)).reasons == ["Xid 79", "hot"]
    assert lasting.rested == 0
    assert quiet(forever := Cards(hot)).reasons == ["hot"]
    assert forever.rested == 10.0


def test_cpu_targets_have_no_cards_to_be_sick() -> None:
    assert health.look(load_target("cpu4")) == Health()
    assert selftest.card_checks(load_target("cpu4")) == []


def test_the_self_test_names_sick_cards() -> None:
    target = load_target("h200x1")

    (bad,) = selftest.card_checks(target, lambda _: Health(lasting=["Xid 79"]))
    (good,) = selftest.card_checks(target, lambda _: found())

    assert (bad.ok, bad.told) == (False, "Xid 79")
    assert good.ok
    assert "0: NVIDIA H100 80GB HBM3, driver 580.159.04" in good.told


def test_what_a_tool_prints_need_not_be_text() -> None:
    """A kernel log holds names that processes gave themselves."""
    assert health._asked(["printf", r"\377Xid"]) == "\ufffdXid"
