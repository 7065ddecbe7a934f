"""The service unit of docs/gpu-hosts.md calls commands that exist."""

from pathlib import Path

from django.conf import settings
from django.core.management import load_command_class

from evaluator.harness import cli

UNIT = Path(settings.BASE_DIR) / "docs" / "pkb-evaluator@.service"


def commands() -> dict[str, list[str]]:
    lines = [line for line in UNIT.read_text().splitlines() if line.startswith("Exec")]
    pairs = [line.replace("%i", "cpu4").split("=", 1) for line in lines]
    return {name: command.split()[1:] for name, command in pairs}


def test_the_units_commands_are_ours() -> None:
    found = commands()

    assert found["ExecStartPre"][:2] == ["-m", "evaluator.harness"]
    assert cli._parser().parse_args(found["ExecStartPre"][2:]).target == "cpu4"
    manage, command, *options = found["ExecStart"]
    assert manage == "manage.py"
    parsed = load_command_class("evaluator", command).create_parser(manage, command).parse_args(options)
    assert parsed.target == "cpu4"


def test_the_guide_names_the_unit_and_its_commands() -> None:
    guide = (UNIT.parent / "gpu-hosts.md").read_text()

    assert f"docs/{UNIT.name}" in guide
    for arguments in (["health", "--target", "TARGET"], ["selftest", "--target", "TARGET"]):
        assert f"-m evaluator.harness {' '.join(arguments)}" in guide
        assert cli._parser().parse_args(arguments).target == "TARGET"
