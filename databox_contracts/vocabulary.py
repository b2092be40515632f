"""The words a contract may use of its own evolution; what they mean is for `evolution` to say."""

from __future__ import annotations

from typing import Final

OWN_POLICY: Final = "backwards_compatible_only"
"""The policy of a six-section contract that says nothing, and of an `evolution` block that names it."""

POLICY_NAMES: Final = (
    "consumer",
    "strict",
    "widening",
    "backward",
    "forward",
    "full",
    "backward_transitive",
    "forward_transitive",
    "full_transitive",
    "none",
    OWN_POLICY,
)

SIGN_OFF_REQUIRED: Final = "required"
"""What `sign_off` says where every consumer of what breaks has to agree first."""

SIGN_OFF_NAMES: Final = (SIGN_OFF_REQUIRED, "optional", "none")

CHANGE_NAMES: Final = (
    "add_optional_field",
    "add_required_field",
    "remove_field",
    "rename_field",
    "widen_numeric_type",
    "change_field_type",
    "widen_enum_values",
    "narrow_enum_values",
    "tighten_nullability",
    "relax_nullability",
    "add_constraint",
    "remove_constraint",
    "tighten_constraint",
    "relax_constraint",
    "change_key",
    "add_dataset",
    "remove_dataset",
    "rename_dataset",
)
