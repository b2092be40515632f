"""`trace`: who holds personal data, what has to be deleted where, and what of that is done."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from databox_contracts.cli.impact import dependencies
from databox_contracts.cli.known import add_known, known
from databox_contracts.errors import DataboxError

if TYPE_CHECKING:
    from databox_contracts.registry.api import RegistryApi
    from databox_contracts.registry.deletion_plans import StoredPlan
    from databox_contracts.registry.plan_files import PlanStore
    from databox_contracts.registry.records import AuditEntry
    from databox_contracts.registry.tracing import Trace

_USAGE: Final = "write `trace FIELD`, `trace --pii`, `trace tick PLAN STEP --by WHO`, `trace show PLAN` or `trace list`"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is traced or done, where everything is known from, and where the plan is kept."""
    add_trace(parser)
    add_known(parser, registry=False)
    parser.add_argument("--registry", metavar="URL|PATH", help="a registry: it knows contracts, and keeps plans")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how it is printed")


def add_trace(parser: argparse.ArgumentParser) -> None:
    """Declare what is traced or done."""
    parser.usage = (
        "%(prog)s (FIELD | --pii) [options]\n"
        "       %(prog)s tick PLAN STEP --by WHO [--note TEXT]\n"
        "       %(prog)s show PLAN\n"
        "       %(prog)s list --registry URL"
    )
    parser.add_argument("words", metavar="FIELD | tick PLAN STEP | show PLAN | list", nargs="*", help="what is wanted")
    parser.add_argument("--pii", action="store_true", help="trace every field with personal data")
    parser.add_argument("--purpose", metavar="P", help="leave out who uses the data for something else only")
    parser.add_argument(
        "--subject", metavar="S", help="whose data; '-' reads it from standard input. Only its keyed digest is kept"
    )
    parser.add_argument("--plan", metavar="FILE", type=Path, help="write the deletion plan into a new file")
    parser.add_argument("--save", action="store_true", help="keep the deletion plan in the registry")
    parser.add_argument("--by", metavar="WHO", help="who does it (needed for a tick)")
    parser.add_argument("--note", metavar="TEXT", default="", help="what else is to be remembered of a step")


def run(args: argparse.Namespace) -> int:
    """0 done; what cannot be traced, or a plan that cannot be used, raises."""
    with ExitStack() as stack:
        registry = None
        if args.registry is not None:
            from databox_contracts.registry.opening import open_registry

            registry = stack.enter_context(closing(open_registry(args.registry)))
        return run_in(registry, args)


def run_in(registry: RegistryApi | None, args: argparse.Namespace) -> int:
    """As `run`, with what a registry knows."""
    words = list(args.words)
    if words and words[0] in _ACTIONS and not args.pii:
        return _ACTIONS[words[0]](_Call(registry, args, words[1:]))
    if len(words) + bool(args.pii) != 1:
        raise DataboxError("nobody can tell what is to be traced", hint=_USAGE)
    return _trace(_Call(registry, args, words))


@dataclass(frozen=True)
class _Call:
    """What was asked for."""

    registry: RegistryApi | None
    args: argparse.Namespace
    words: Sequence[str]

    def store(self, plan: str | None) -> tuple[PlanStore, str]:
        """Where the plan is kept, and its id: a file of that name, else the registry's plan."""
        from databox_contracts.registry.database import utc_now
        from databox_contracts.registry.plan_files import FilePlanStore

        if plan is not None and (self.registry is None or Path(plan).is_file()):
            file = FilePlanStore(plan, utc_now)
            return file, file.plans()[0].id
        plans = getattr(self.registry, "plans", None)
        if plans is None:
            where = "there is none" if self.registry is None else "a registry over HTTP keeps none for its clients"
            raise DataboxError(f"plans are kept in files, or in a registry's database; {where}", hint="Name a file.")
        return plans, plan or ""


# --- what is traced ---------------------------------------------------------------------------------------------------


def _trace(call: _Call) -> int:
    from databox_contracts.registry.tracing import trace

    args = call.args
    if args.subject is not None and args.plan is None and not args.save:
        raise DataboxError("a subject belongs to a plan", hint="Add --plan FILE, or --save with a registry.")
    made, problems = dependencies(known(args, call.registry))
    found = trace(made, call.words[0] if call.words else None, purpose=args.purpose)
    plans = list(_plans(call, found))
    if args.format == "json":
        from databox_contracts.registry.plan_files import plan_facts

        facts = {**found.to_dict(), "problems": [problem.to_dict() for problem in problems]}
        _print_json({**facts, "plan": plan_facts(plans[0]) if plans else None})
        return 0
    for line in _lines(found):
        print(line)
    for plan in plans:
        print(f"Plan {plan.id}, {len(plan.steps)} steps: {args.plan if args.plan is not None else 'in the registry'}")
        print(f"  the subject: {_subject(plan, args.subject)}")
    return 0


def _plans(call: _Call, found: Trace) -> Iterator[StoredPlan]:
    """The plan, where one is to be kept."""
    from uuid import uuid4

    from databox_contracts.registry.database import utc_now
    from databox_contracts.registry.plan_files import FilePlanStore
    from databox_contracts.registry.tracing import KEY_VARIABLE, deletion_plan

    args = call.args
    if args.plan is None and not args.save:
        return
    store = FilePlanStore(args.plan, utc_now) if args.plan is not None else call.store(None)[0]
    now = utc_now()
    plan = deletion_plan(
        found,
        plan_id=f"deletion-{now:%Y%m%d}-{uuid4().hex[:8]}",
        by=args.by or _user(),
        at=now,
        subject=_given(args.subject),
        key=os.environ.get(KEY_VARIABLE),
    )
    yield store.save(plan)


def _given(subject: str | None) -> str | None:
    if subject != "-":
        return subject
    return sys.stdin.readline().rstrip("\r\n")


def _subject(plan: StoredPlan, subject: str | None) -> str:
    from databox_contracts.registry.tracing import KEY_VARIABLE

    if plan.facts.get("subject_digest") is not None:
        return f"kept as a digest with the key in ${KEY_VARIABLE}"
    return "none is named" if subject is None else f"not kept, since ${KEY_VARIABLE} is not set"


def _lines(found: Trace) -> Iterator[str]:
    purpose = f" for {found.purpose}" if found.purpose is not None else ""
    yield f"{len(found.fields)} field{'s' if len(found.fields) != 1 else ''}: {', '.join(found.fields)}"
    yield f"held{purpose} by:"
    for holder in found.holders:
        one = holder.reached
        owner = f" ({one.owner})" if one.owner is not None else ""
        of = f" of {one.contract}" if one.kind == "consumer" else ""
        used = f", for {one.purpose}" if one.purpose is not None else ""
        yield f"  {one.distance}  {one.kind} {one.name}{owner}{of}{used}"
        for field, names in holder.held:
            yield f"     {field}" + (f" as {', '.join(names)}" if names else "")
        if len(one.path) > 2:
            yield f"     by way of {' > '.join(one.path)}"
    for excluded in found.excluded:
        yield f"  left out: {excluded.name}, {excluded.reason}"


# --- what is done -----------------------------------------------------------------------------------------------------


def _tick(call: _Call) -> int:
    if len(call.words) != 2 or not call.words[1].isdecimal() or not (call.args.by or "").strip():
        raise DataboxError("a tick names the plan, the number of the step, and who did it", hint=_USAGE)
    store, plan_id = call.store(call.words[0])
    number = int(call.words[1])
    plan = store.tick(plan_id, number, by=call.args.by, note=call.args.note)
    step = next(step for step in plan.steps if step.number == number)
    if call.args.format == "json":
        return _shown_json(plan, _audit(call, store, plan), None)
    print(f"{plan.id}: step {number} is done, by {step.done_by} on {step.done_at:%Y-%m-%d %H:%M} UTC; {_left(plan)}")
    return 0


def _show(call: _Call) -> int:
    from databox_contracts.registry.tracing import KEY_VARIABLE, is_about

    if len(call.words) != 1:
        raise DataboxError("one plan is shown at a time", hint=_USAGE)
    store, plan_id = call.store(call.words[0])
    plan = store.plan(plan_id)
    if plan is None:
        raise DataboxError(f"there is no deletion plan {plan_id!r}", hint="`trace list` has those of the registry.")
    subject, about = call.args.subject, None
    if subject is not None:
        about = is_about(plan, _given(subject) or "", os.environ.get(KEY_VARIABLE))
    audit = _audit(call, store, plan)
    if call.args.format == "json":
        return _shown_json(plan, audit, about)
    print(f"{plan.id}: delete {plan.field}, made by {plan.made_by} on {plan.made_at:%Y-%m-%d %H:%M} UTC; {_left(plan)}")
    for step in plan.steps:
        mark = "x" if step.done_at is not None else " "
        done = f" - {step.done_by}, {step.done_at:%Y-%m-%d %H:%M} UTC" if step.done_at is not None else ""
        print(f"  [{mark}] {step.number}. {step.title}{done}{f': {step.note}' if step.note else ''}")
    if subject is not None:
        print(_UNTOLD if about is None else f"It is about {'that' if about else 'another'} subject.")
    for entry in audit:
        print(f"  {entry.at:%Y-%m-%d %H:%M:%S} UTC  {entry.who}: {entry.action}")
    return 0


_UNTOLD: Final = "Nobody can tell whose it is: it keeps no digest, or the key is not set."


def _list(call: _Call) -> int:
    if call.words:
        raise DataboxError("`trace list` takes no more words", hint=_USAGE)
    from databox_contracts.registry.plan_files import plan_facts

    plans = call.store(None)[0].plans()
    if call.args.format == "json":
        _print_json({"plans": [plan_facts(plan) for plan in plans]})
        return 0
    for plan in plans:
        print(f"{plan.id}  {plan.made_at:%Y-%m-%d}  {plan.field}  {_left(plan)}")
    if not plans:
        print("There is no deletion plan.")
    return 0


def _left(plan: StoredPlan) -> str:
    left = sum(step.done_at is None for step in plan.steps)
    return f"{left} of {len(plan.steps)} steps are left" if left else f"all {len(plan.steps)} steps are done"


def _audit(call: _Call, store: PlanStore, plan: StoredPlan) -> Sequence[AuditEntry]:
    """What was done to the plan, as far as this store tells."""
    from databox_contracts.registry.plan_files import FilePlanStore

    if isinstance(store, FilePlanStore):
        return store.audit()
    audit: Callable[[str], Sequence[AuditEntry]] | None = getattr(call.registry, "audit", None)
    return audit(plan.id) if audit is not None else ()


def _shown_json(plan: StoredPlan, audit: Sequence[AuditEntry], about: bool | None) -> int:
    from databox_contracts.registry.plan_files import plan_facts

    facts: dict[str, Any] = {**plan_facts(plan), "audit": [entry.to_dict() for entry in audit]}
    _print_json(facts if about is None else {**facts, "is_about_subject": about})
    return 0


def _print_json(facts: dict[str, Any]) -> None:
    print(json.dumps(facts, indent=2, ensure_ascii=False))


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container's user need not have a name.
        return "unknown"


_ACTIONS: Final[dict[str, Callable[[_Call], int]]] = {"tick": _tick, "show": _show, "list": _list}
