"""SodaCL's checks of one line: which rule each becomes, and what each mistake is told."""

import pytest

from databox_contracts import rules
from databox_contracts.errors import Level
from databox_contracts.formats.positions import parse_yaml
from databox_contracts.formats.reading import Report, Section
from databox_contracts.formats.sodacl import Table, read_checks
from databox_contracts.formats.sodacl_thresholds import ThresholdError, negated, parse_thresholds
from databox_contracts.rules import NO_ROWS, Operator, Severity, Threshold, Unit

TABLE = Table(
    "orders", {"id": "string", "size": "integer", "placed": "timestamp", "state": "string", "who.mail": "string"}
)


def checked(text: str):
    report = Report(parse_yaml("checks:\n" + text, "c.yaml"))
    section = Section(report, (), report.document.data)
    found = list(read_checks(section, "checks", TABLE))
    return found, report.in_order()


def facts(one):
    """A rule's column, class and own attributes."""
    names = type(one.rule).__slots__
    return one.column, type(one.rule), {name: getattr(one.rule, name) for name in names}


def percent(operator: Operator, value: float) -> Threshold:
    return Threshold(operator, value, unit=Unit.PERCENT)


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("row_count > 10000", (None, rules.RowCount, {"threshold": Threshold(Operator.GREATER_THAN, 10000)})),
        ("row_count between 0 and 5", (None, rules.RowCount, {"threshold": Threshold(Operator.BETWEEN, 0, 5)})),
        ("missing_count(id) = 0", ("id", rules.NullCount, {"threshold": NO_ROWS})),
        ("missing_percent(id) < 5%", ("id", rules.NullCount, {"threshold": percent(Operator.LESS_THAN, 5)})),
        ("missing_percent(id) < 5", ("id", rules.NullCount, {"threshold": percent(Operator.LESS_THAN, 5)})),
        ("missing_count(ID) = 0", ("id", rules.NullCount, {"threshold": NO_ROWS})),
        ("missing_count(who.mail) = 0", ("who.mail", rules.NullCount, {"threshold": NO_ROWS})),
        ("duplicate_count(id) = 0", ("id", rules.DuplicateCount, {"fields": (), "threshold": NO_ROWS})),
        ("duplicate_count(id, size)=0", (None, rules.DuplicateCount, {"fields": ("id", "size"), "threshold": NO_ROWS})),
        ("freshness(placed) < 10m", (None, rules.Freshness, {"seconds": 600, "element": "placed"})),
        ("freshness using placed < 1d", (None, rules.Freshness, {"seconds": 86400, "element": "placed"})),
        (
            "avg(size) between -1.5 and 2",
            (
                "size",
                rules.Statistic,
                {"statistic": "avg", "threshold": Threshold(Operator.BETWEEN, -1.5, 2), "quantile": None},
            ),
        ),
        (
            "percentile(size, 0.95) <= 0",
            (
                "size",
                rules.Statistic,
                {"statistic": "quantile", "threshold": Threshold(Operator.LESS_OR_EQUAL, 0), "quantile": 0.95},
            ),
        ),
        ("min_length(id) >= 0", ("id", rules.MinLength, {"length": 0})),
        ("min_length(id) > 2", ("id", rules.MinLength, {"length": 3})),
        ("max_length(id) <= 9", ("id", rules.MaxLength, {"length": 9})),
        ("max_length(id) < 9", ("id", rules.MaxLength, {"length": 8})),
        (
            "values in (id, size) must exist in shop.items (key, width)",
            (None, rules.ForeignKey, {"fields": ("id", "size"), "to": "shop.items", "to_fields": ("key", "width")}),
        ),
    ],
)
def test_a_check_of_one_line(check, expected):
    (one,), findings = checked(f"- {check}\n")
    assert facts(one) == expected
    assert findings == []
    assert one.rule.description == check
    assert (one.rule.position.line, one.rule.position.column) == (2, 3)


@pytest.mark.parametrize("statistic", ["avg", "min", "max", "sum", "stddev"])
def test_the_statistics(statistic):
    (one,), _ = checked(f"- {statistic}(size) > 0\n")
    assert (one.column, one.rule.statistic) == ("size", statistic)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("valid values: [a, '']", {"valid_values": ("a", ""), "pattern": None, "threshold": NO_ROWS}),
        ("valid regex: a+", {"valid_values": None, "pattern": "^(?:a+)$", "threshold": NO_ROWS}),
        ("valid length: 3", {"valid_values": None, "pattern": r"^[\s\S]{3}$", "threshold": NO_ROWS}),
    ],
)
def test_what_is_valid(options, expected):
    (one,), findings = checked(f"- invalid_count(state) = 0:\n    {options}\n")
    assert facts(one) == ("state", rules.InvalidCount, expected)
    assert findings == []


def test_valid_values_are_read_as_the_column_wants_them():
    (one,), findings = checked("- invalid_count(size) = 0:\n    valid values: [0, 1]\n")
    assert one.rule.valid_values == (0, 1)
    assert findings == []
    _, findings = checked("- invalid_count(size) = 0:\n    valid values: [small]\n")
    assert [finding.level for finding in findings] == [Level.ERROR]


def test_a_format_is_a_pattern():
    (one,), findings = checked("- invalid_percent(id) < 1%:\n    valid format: uuid\n")
    assert one.rule.pattern.startswith("^[0-9A-Fa-f]{8}-")
    assert findings == []


def test_valid_bounds_are_rules_of_every_value_where_none_may_break_them():
    found, findings = checked("- invalid_count(size) = 0:\n    valid min: 0\n    valid max: 9\n")
    assert [facts(one) for one in found] == [
        ("size", rules.Minimum, {"limit": 0}),
        ("size", rules.Maximum, {"limit": 9}),
    ]
    assert findings == []
    (one,), findings = checked("- invalid_count(size) < 5:\n    valid min: 0\n")
    assert type(one.rule) is rules.NotEnforced
    assert [finding.level for finding in findings] == [Level.WARNING]


def test_missing_values_count_nulls_too():
    (one,), _ = checked("- missing_count(id) = 0:\n    missing values: [NA, '']\n")
    assert one.rule.missing_values == (None, "NA", "")


def test_a_name_and_alerts():
    found, findings = checked("- row_count:\n    name: enough\n    warn: when < 100\n    fail: when = 0\n")
    assert [(one.rule.name, one.rule.severity, one.rule.threshold) for one in found] == [
        ("enough", Severity.ERROR, Threshold(Operator.MUST_NOT_BE, 0)),
        ("enough", Severity.WARNING, Threshold(Operator.GREATER_OR_EQUAL, 100)),
    ]
    assert findings == []


def test_failed_rows():
    found, findings = checked(
        "- failed rows:\n    fail condition: size < 0\n- failed rows:\n    fail query: SELECT id FROM orders\n"
    )
    assert [type(one.rule) for one in found] == [rules.Expression, rules.Query]
    assert found[0].rule.sql == "NOT (size < 0)"
    assert found[1].rule.sql == "SELECT COUNT(*) FROM (SELECT id FROM orders) AS failed_rows"
    assert findings == []


@pytest.mark.parametrize(
    ("option", "sql"),
    [
        ("fail condition: '\"size\" < 0'", "NOT (`size` < 0)"),
        ("fail condition: |\n        size < 0 -- never\n        AND size > -9", "NOT (size < 0 AND size > -9)"),
        ("fail query: SELECT id FROM orders;", "SELECT COUNT(*) FROM (SELECT id FROM orders) AS failed_rows"),
        ("fail query: SELECT id FROM wh.orders", "SELECT COUNT(*) FROM (SELECT id FROM orders) AS failed_rows"),
        (
            "fail query: SELECT id FROM orders -- all",
            "SELECT COUNT(*) FROM (SELECT id FROM orders) AS failed_rows",
        ),
    ],
)
def test_failed_rows_are_counted_in_sparks_sql(option, sql):
    (one,), findings = checked(f"- failed rows:\n    {option}\n")
    assert one.rule.sql == sql
    assert findings == []


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("fail query: DROP TABLE orders", "a statement that is not one SELECT"),
        ("fail query: DELETE FROM orders", "a statement that is not one SELECT"),
        ("fail query: SELECT 1; DROP TABLE orders", "a statement that is not one SELECT"),
        ("fail query: SELECT 1; SELECT 2", "2 queries, and a promise is one"),
        ("fail query: SELECT * INTO copy FROM orders", "a query that does not only read"),
        ("fail query: \"SELECT REFLECT('java.lang.System', 'exit')\"", "a query that calls reflect"),
        ("fail query: SELECT id FROM", "a query that is not Spark SQL"),
        ("fail query: SELECT 1) AS a, (SELECT 2", "a query that is not Spark SQL"),
        ("fail condition: 1 = 1); DROP TABLE orders; --", "a condition that is not Spark SQL"),
        ("fail condition: 1 = 1) OR (1 = 1", "a condition that is not Spark SQL"),
        ("fail condition: SELECT 1", "a condition that is not Spark SQL"),
        ("fail condition: DROP TABLE orders", "a condition that is not Spark SQL"),
        ("fail condition: \"JAVA_METHOD('java.lang.System', 'exit') = 1\"", "a query that calls java_method"),
    ],
)
def test_failed_rows_that_do_not_only_read_are_never_run(option, reason):
    (one,), findings = checked(f"- failed rows:\n    {option}\n")
    assert type(one.rule) is rules.NotEnforced
    assert one.rule.reason.endswith(reason)
    assert [finding.level for finding in findings] == [Level.WARNING]


@pytest.mark.parametrize(
    "check",
    [
        "anomaly detection for row_count",
        "row_count same as other",
        "change for row_count < 5",
        "avg_length(id) > 3",
        "max_length(id) > 3",
        "row_count > 0:\n    filter: size > 0",
        "missing_count(id) = 0:\n    missing regex: x",
        "invalid_count(id) = 0:\n    valid format: phone number",
        "schema:\n    fail:\n      when required column missing: [id]",
        "ratio > 1:\n    ratio expression: a / b",
    ],
)
def test_what_is_not_ours_is_skipped_with_a_warning(check):
    (one,), findings = checked(f"- {check}\n")
    assert type(one.rule) is rules.NotEnforced
    assert [finding.level for finding in findings] == [Level.WARNING]
    assert findings[0].position.line in (2, 3)


@pytest.mark.parametrize(
    ("check", "message", "hint"),
    [
        ("rowcount > 0", "check 'rowcount > 0': this is no check that is known", "did you mean 'row_count'?"),
        ("missing_count(idd) = 0", "'idd' is no field of 'orders'", "did you mean 'id'?"),
        ("missing_count = 0", "it is about one column", "name it in brackets"),
        ("missing_count() = 0", "it is about one column", "name it in brackets"),
        ("row_count(id) > 0", "row_count is about the whole table", "alone"),
        ("row_count > 5%", "row_count has no percentage", "leave"),
        ("row_count", "it says no threshold", "write one"),
        ("row_count > many", "the threshold '> many': it is none", "write one"),
        ("row_count between 5 and 1", "its bounds are reversed", "write one"),
        ("invalid_count(id) = 0", "it does not say what is valid", "valid values"),
        ("invalid_count(id) = 0:\n    valid values: []", "allows no value at all", "list"),
        ("duplicate_count = 0", "it names no column", "duplicate_count(id)"),
        ("percentile(size) < 1", "it needs a column and a share", "percentile(size, 0.95)"),
        ("freshness(placed) < 10", "'10' is no duration", "PT10M"),
        ("values in (id, size) must exist in t (a)", "not as many columns", "one for each"),
        ("failed rows:\n    name: x", "it says no condition", "fail condition"),
        ("''", "this is no check that is known", "known are"),
        ("7", "a check must be a text", "row_count"),
        ("{}", "a check must be a text", "row_count"),
    ],
)
def test_a_mistake_is_an_error_with_the_way_out(check, message, hint):
    found, findings = checked(f"- {check}\n")
    assert found == []
    errors = [finding for finding in findings if finding.level is Level.ERROR]
    assert len(errors) == 1
    assert message in errors[0].message
    assert hint in errors[0].hint
    assert errors[0].position.line in (2, 3)


def test_an_unknown_option_is_reported():
    _, findings = checked("- missing_count(id) = 0:\n    missing value: [a]\n")
    assert [(finding.level, finding.message) for finding in findings] == [
        (Level.WARNING, "the unknown key 'missing value' is ignored")
    ]


def test_an_overlong_check_is_refused():
    found, findings = checked(f"- row_count > {'1' * 3000}\n")
    assert found == []
    assert "too long" in findings[0].message


def test_no_checks_are_no_rules():
    assert checked(" []\n") == ([], [])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("= 0", (Threshold(Operator.MUST_BE, 0),)),
        ("!=0", (Threshold(Operator.MUST_NOT_BE, 0),)),
        (">= 1.50", (Threshold(Operator.GREATER_OR_EQUAL, 1.5),)),
        ("< 5 %", (Threshold(Operator.LESS_THAN, 5, unit=Unit.PERCENT),)),
        ("not between 1 and 2", (Threshold(Operator.NOT_BETWEEN, 1, 2),)),
        ("between (1 and 2]", (Threshold(Operator.GREATER_THAN, 1), Threshold(Operator.LESS_OR_EQUAL, 2))),
        ("between [1 and 2]", (Threshold(Operator.BETWEEN, 1, 2),)),
    ],
)
def test_thresholds(written, expected):
    assert parse_thresholds(written) == expected


@pytest.mark.parametrize("written", ["", "5", "> ", "between 1", "between (1 and 2", "not between (1 and 2)", "= nan"])
def test_what_is_no_threshold(written):
    with pytest.raises(ThresholdError):
        parse_thresholds(written)


@pytest.mark.parametrize(
    "written", ["= 1", "!= 1", "> 1", ">= 1", "< 1", "<= 1", "between 0 and 1", "not between 0 and 1"]
)
def test_the_negation_holds_where_the_threshold_does_not(written):
    (threshold,) = parse_thresholds(written)
    for observed in (-1, 0, 0.5, 1, 2):
        assert negated(threshold).holds(observed) is not threshold.holds(observed)
