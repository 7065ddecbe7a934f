"""What the API gives for problems and targets."""

from typing import Any

from rest_framework import serializers

from problems.models import Problem, Target


class ProblemSerializer(serializers.ModelSerializer[Problem]):
    """One problem in a list."""

    class Meta:
        model = Problem
        fields = (
            "slug", "number", "title", "level", "domain", "parallelism", "collectives", "bound", "summary",
            "score_revision", "roofline_revision",
        )  # fmt: skip
        read_only_fields = fields


class ProblemDetailSerializer(ProblemSerializer):
    """One problem with its whole declaration."""

    spec = serializers.DictField(read_only=True)

    class Meta(ProblemSerializer.Meta):
        fields = (*ProblemSerializer.Meta.fields, "spec")  # type: ignore[assignment]
        read_only_fields = fields  # type: ignore[assignment]


class TargetSerializer(serializers.ModelSerializer[Target]):
    """One target."""

    spec = serializers.DictField(read_only=True)

    class Meta:
        model = Target
        fields = ("slug", "title", "ranks", "backend", "cells", "ranked", "spec")
        read_only_fields = fields


class PromptSerializer(serializers.Serializer[Any]):
    """A prompt and its hash."""

    problem = serializers.CharField()
    target = serializers.CharField()
    variant = serializers.CharField()
    backend = serializers.CharField()
    dtype = serializers.CharField()
    sha256 = serializers.CharField()
    text = serializers.CharField()
