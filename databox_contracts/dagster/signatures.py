"""What the parameters of a decorated function are to Dagster: context, config, resources, or input tables."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any, Final, get_args

import dagster as dg

from databox_contracts.dagster.consumption import consumed_key
from databox_contracts.errors import DataboxError

_CONTEXT_NAMES: Final = ("context", "_context", "context_", "_")
_RESOURCE_TYPES: Final = (
    dg.ConfigurableResource,
    dg.ConfigurableIOManager,
    dg.ConfigurableIOManagerFactory,
    dg.ResourceDefinition,
)
_RESOURCE_MARK: Final = get_args(dg.ResourceParam[object])[1:]
_NO_TYPE: Final = dg.AssetIn().dagster_type


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a decorated function, by what they are.

    `signature` is the one that Dagster is to see: annotations resolved, a context always first, nothing said about
    what is returned. `takes_context` is whether the function itself has one.
    """

    signature: Signature
    inputs: tuple[str, ...]
    takes_context: bool
    takes_any: bool


def read_parameters(function: Callable[..., Any]) -> Parameters:
    """Sort a function's parameters. Raises `DataboxError` for an annotation that cannot be resolved."""
    plain = inspect.signature(function)
    hints = _hints(function, plain)
    params = [param.replace(annotation=hints.get(name, Parameter.empty)) for name, param in plain.parameters.items()]
    takes_context = bool(params) and params[0].name in _CONTEXT_NAMES
    context = (
        params.pop(0)
        if takes_context
        else Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=dg.AssetExecutionContext)
    )
    named = [param for param in params if param.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    return Parameters(
        signature=Signature([context, *params]),
        inputs=tuple(param.name for param in named if param.name != "config" and not _is_resource(param.annotation)),
        takes_context=takes_context,
        takes_any=any(param.kind is Parameter.VAR_KEYWORD for param in params),
    )


def input_keys(
    parameters: Parameters,
    ins: Mapping[str, dg.AssetIn],
    consumes: Iterable[str],
    name: str,
) -> tuple[dict[str, dg.AssetIn], list[dg.AssetKey]]:
    """The asset of each input, and the assets consumed without being an input.

    An input is what `ins` says, else the consumed dataset whose last part is the parameter's name, else the asset of
    that name. Raises `DataboxError` where two consumed datasets could be meant, or `ins` names no parameter.
    """
    strangers = [given for given in ins if given not in parameters.inputs and not parameters.takes_any]
    if strangers:
        known = ", ".join(parameters.inputs) or "none"
        raise DataboxError(f"{name} has no parameter {strangers[0]!r} for its ins", hint=f"Its inputs are: {known}.")
    typed = [given for given, asset_in in ins.items() if asset_in.dagster_type != _NO_TYPE]
    if typed:
        way_out = "Annotate the parameter instead, or use deps for what is not read."
        raise DataboxError(f"the input {typed[0]!r} of {name} has a dagster_type", hint=way_out)
    consumed = {name: consumed_key(name) for name in consumes}
    found = dict(ins)
    for parameter in parameters.inputs:
        if parameter in found:
            continue
        meant = [key for key in consumed.values() if key.path[-1] == parameter]
        if len(meant) > 1:
            raise DataboxError(
                f"the input {parameter!r} of {name} may be {' or '.join(key.to_user_string() for key in meant)}",
                hint="Say which one with ins={...: dagster.AssetIn(key=...)}.",
            )
        found[parameter] = dg.AssetIn(key=meant[0] if meant else dg.AssetKey([parameter]))
    taken = {input_key(parameter, asset_in) for parameter, asset_in in found.items()}
    return found, [key for key in consumed.values() if key not in taken]


def input_key(parameter: str, asset_in: dg.AssetIn) -> dg.AssetKey:
    """The key that an `AssetIn` stands for."""
    if asset_in.key is not None:
        return asset_in.key
    prefix = asset_in.key_prefix or []
    return dg.AssetKey([*([prefix] if isinstance(prefix, str) else prefix), parameter])


def _is_resource(annotation: object) -> bool:
    if getattr(annotation, "__metadata__", None) == _RESOURCE_MARK:
        return True
    origin = typing.get_origin(annotation) or annotation
    return isinstance(origin, type) and issubclass(origin, _RESOURCE_TYPES)


def _hints(function: Callable[..., Any], signature: Signature) -> dict[str, Any]:
    """Resolved annotations of the parameters; what the function returns is not looked at."""
    resolved: dict[str, Any] = {}
    for name, param in signature.parameters.items():
        annotation = param.annotation
        if not isinstance(annotation, str):
            resolved[name] = annotation
            continue
        try:
            resolved[name] = _resolve(annotation, function)
        except NameError as error:
            # A table's type is often imported for type checkers alone, and Dagster needs to know no more of it.
            if annotation.rpartition(".")[2] != "DataFrame":
                raise DataboxError(
                    f"the annotation {annotation!r} of {function.__qualname__}'s parameter {name!r} is not known"
                    " when the code is loaded",
                    hint="Import it at the top of the module, outside `if TYPE_CHECKING`.",
                ) from error
            resolved[name] = Any
    return resolved


def _resolve(annotation: str, function: Callable[..., Any]) -> Any:
    def holder() -> None: ...

    holder.__annotations__ = {"it": annotation}
    namespace = getattr(inspect.unwrap(function), "__globals__", {})
    return typing.get_type_hints(holder, globalns=namespace, include_extras=True)["it"]
