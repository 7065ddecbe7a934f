"""Request bodies and their fields, whose refusals say what would be taken."""

from typing import Any

from rest_framework import serializers

from portal.core.query import none_of


class ChoiceField(serializers.ChoiceField):
    """One of some words; another is refused with the list of them."""

    default_error_messages = {"invalid_choice": '"{input}" is none of: {choices}.'}  # noqa: RUF012

    def to_internal_value(self, data: Any) -> Any:
        """Return the choice."""
        if data == "" and self.allow_blank:
            return ""
        if str(data) not in self.choice_strings_to_values:
            self.fail("invalid_choice", input=str(data)[:40], choices=", ".join(map(str, self.choices)))
        return self.choice_strings_to_values[str(data)]


class BooleanField(serializers.BooleanField):
    """True or false."""

    default_error_messages = {"invalid": "Send true or false."}  # noqa: RUF012


class Body(serializers.Serializer[Any]):
    """A request body; a field that it does not have is refused, since it may be a slip of the pen."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Name the first field that we would ignore, and those that there are."""
        for name in self.initial_data:
            if name not in self.fields:
                told = serializers.ErrorDetail(none_of(str(name), self.fields), "unknown_field")
                raise serializers.ValidationError({str(name)[:60]: told})
        return attrs
