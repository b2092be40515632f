"""Which room may import which, what importing the package costs, and the names it promises."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import databox_contracts

PACKAGE = Path(databox_contracts.__file__).parent

CORE = (
    "errors",
    "datatypes",
    "patterns",
    "text_formats",
    "rules",
    "model",
    "inferred",
    "personal",
    "results",
    "normalizing",
    "versions",
    "version_ranges",
    "lifecycle",
    "vocabulary",
    "workflow_commands",
    "personal",
    "inferred",
    "plan",
    "annotations",
    "pydantic_models",
    "row_rules",
    "row_validation",
    "schema_registry",
    "declare",
    "schema_modes",
    "profiles",
    "drift",
    "drift_comparison",
    "baselines",
    "contact_secrets",
    "notifications",
    "approvals",
    "check_reports",
    "pipes",
    "declarations",
    "lineage",
)
DIALECTS = ("formats", "evolution")
ENGINES = (
    "gate",
    "migrations",
    "registry",
    "notify",
    "service",
    "telemetry",
    "catalog",
    "export",
    "spark",
)
FRONTS = ("dagster", "cli", "testing")

# Besides itself. Later rooms of the same kind do not know each other, but for those two.
MAY_IMPORT = {
    **dict.fromkeys(CORE, CORE),
    **dict.fromkeys(DIALECTS, CORE),
    **dict.fromkeys(ENGINES, (*CORE, *DIALECTS)),
    **dict.fromkeys(("service", "catalog"), (*CORE, *DIALECTS, "registry")),
    **dict.fromkeys(FRONTS, (*CORE, *DIALECTS, *ENGINES, *FRONTS)),
    "__init__": (*CORE, *DIALECTS, "notify"),
    "__main__": ("cli",),
}

ONLY_IN = {"pyspark": ("spark",), "dagster": ("dagster",), "dagster_pyspark": ("dagster",), "sqlalchemy": ("registry",)}
ONLY_IN |= dict.fromkeys(("deltalake", "pyiceberg"), ("spark",))
ONLY_IN |= dict.fromkeys(("apprise", "confluent_kafka"), ("notify",))
ONLY_IN |= dict.fromkeys(("starlette", "uvicorn", "anyio", "h11"), ("service",))
ONLY_IN |= {"prometheus_client": ("service", "telemetry")}
ONLY_IN |= dict.fromkeys(("opentelemetry", "openlineage"), ("telemetry",))

HEAVY = ("pyspark", "dagster", "sqlalchemy", "sqlglot", "jsonschema", "jsonschema_rs", "pandas", "pyarrow")
HEAVY += ("deltalake", "pyiceberg", "apprise", "confluent_kafka")
HEAVY += ("starlette", "uvicorn", "prometheus_client", "opentelemetry", "openlineage")

MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def nodes(tree: ast.AST, *, annotations: bool) -> Iterator[ast.AST]:
    """All nodes; without `annotations` those below `if TYPE_CHECKING:` are left out, which never run."""
    for child in ast.iter_child_nodes(tree):
        if not annotations and isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from nodes(child, annotations=annotations)


def imported(path: Path, *, annotations: bool) -> Iterator[tuple[int, str]]:
    """Every absolute import of a module, wherever it stands, with its line."""
    for node in nodes(ast.parse(path.read_text(encoding="utf-8")), annotations=annotations):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            assert node.module is not None
            if node.module == "databox_contracts":
                yield from ((node.lineno, f"databox_contracts.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module


def test_every_room_is_known():
    assert {room_of(path) for path in MODULES} <= set(MAY_IMPORT)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards_only(path):
    room = room_of(path)
    wrong = [
        f"line {line}: {name}"
        for line, name in imported(path, annotations=True)
        if name.startswith("databox_contracts.") and name.split(".")[1] not in (room, *MAY_IMPORT[room])
    ]
    assert wrong == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_foreign_part_is_imported_in_its_room_only(path):
    wrong = [
        f"line {line}: {name}"
        for line, name in imported(path, annotations=False)
        if room_of(path) not in ONLY_IN.get(name.split(".")[0], (room_of(path),))
    ]
    assert wrong == []


def test_every_room_is_in_the_wheel():
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())
    rooms = {".".join(path.parent.relative_to(PACKAGE.parent).parts) for path in MODULES}
    assert project["tool"]["setuptools"]["packages"] == sorted(rooms)


def modules_after(statement: str) -> set[str]:
    code = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); {statement}; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import databox_contracts",
        "from databox_contracts import Contract, Verdict, load_contract",
        "import databox_contracts.cli",
        "from databox_contracts import NotificationBus; from databox_contracts.notify import Delivery, MemoryOutbox",
    ],
)
def test_importing_loads_nothing_heavy(statement):
    assert sorted(modules_after(statement) & set(HEAVY)) == []


def test_importing_the_package_loads_none_of_its_rooms():
    loaded = modules_after("import databox_contracts")
    assert sorted(name for name in loaded if name.startswith("databox_contracts.")) == []


def test_the_public_names():
    assert sorted(databox_contracts.__all__) == [
        "ChangeType",
        "CheckResult",
        "Consumer",
        "Contract",
        "ContractBase",
        "ContractError",
        "ContractViolationError",
        "DataValidationError",
        "DataboxError",
        "Dataset",
        "Dimension",
        "Field",
        "FieldChange",
        "Finding",
        "MigrationReport",
        "NotificationBus",
        "PublicationError",
        "Rule",
        "SchemaDiff",
        "SchemaRegistry",
        "SchemaVersion",
        "Severity",
        "SparkUnavailableError",
        "Status",
        "Threshold",
        "UnknownDatasetError",
        "UnreadableTableError",
        "ValidationError",
        "ValidationResult",
        "Verdict",
        "contract",
        "diff",
        "dump_contract",
        "load_contract",
        "load_contracts",
        "validate_data",
    ]
    for name in databox_contracts.__all__:
        assert getattr(databox_contracts, name) is not None
        assert name in dir(databox_contracts)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = databox_contracts.nothing


@pytest.mark.parametrize("room", ["", ".evolution", ".export", ".formats", ".notify", ".spark", ".dagster", ".cli"])
def test_no_module_is_named_like_a_public_name(room):
    package = import_module(f"databox_contracts{room}")
    folder = Path(str(package.__file__)).parent
    modules = {path.stem for path in folder.glob("*.py")} | {path.name for path in folder.iterdir() if path.is_dir()}
    assert sorted(modules & set(getattr(package, "__all__", ()))) == []
