from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from databox_contracts.errors import PublicationError
from databox_contracts.spark.tables import TablePlace
from databox_contracts.spark.versions import VersionStore


def write(directory: Path, text: str) -> None:
    directory.mkdir(parents=True)
    (directory / "part-0.parquet").write_text(text)


def publish(place: TablePlace, text: str, *, held: str | None = None, run_id: str = "r", at: float = 0) -> Path | None:
    store = VersionStore(place, now=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=at))
    with store.stage() as staged:
        write(staged.data, text)
        if held is not None:
            write(staged.held, held)
        return store.commit(staged, {"run_id": run_id})


def readable(place: TablePlace) -> str:
    return (place.link / "part-0.parquet").read_text()


@pytest.fixture
def place(tmp_path: Path) -> TablePlace:
    return TablePlace(tmp_path / "root", "weather/hourly")


def test_a_version_replaces_the_one_before_and_both_stay(place: TablePlace) -> None:
    assert place.current_version() is None
    publish(place, "one")
    first = place.link.resolve()
    publish(place, "two")
    assert readable(place) == "two"
    assert (first / "part-0.parquet").read_text() == "one"
    assert json.loads((place.link / "_databox.json").read_text())["previous"] == first.name
    assert not any(place.staging.iterdir())


def test_the_link_is_relative_so_that_the_root_can_be_moved(place: TablePlace) -> None:
    publish(place, "one")
    moved = place.root.rename(place.root.with_name("moved"))
    assert (moved / "weather/hourly/part-0.parquet").read_text() == "one"


def test_an_abandoned_stage_leaves_nothing(place: TablePlace) -> None:
    publish(place, "one")
    with VersionStore(place).stage() as staged:
        write(staged.data, "two")
    assert readable(place) == "one"
    assert not any(place.staging.iterdir())


def test_of_two_publishes_the_later_to_finish_is_told(place: TablePlace) -> None:
    store = VersionStore(place)
    with store.stage() as slow:
        write(slow.data, "slow")
        publish(place, "quick")
        with pytest.raises(PublicationError, match="another publish finished first"):
            store.commit(slow, {"run_id": "s"})
    assert readable(place) == "quick"


def test_old_versions_go_after_a_day_but_never_the_last_two(place: TablePlace) -> None:
    for at in range(3):
        publish(place, str(at))
    assert len(list(place.versions.iterdir())) == 3
    for marker in place.versions.glob("*/_published"):
        earlier = marker.stat().st_mtime - timedelta(hours=30).total_seconds()
        os.utime(marker, (earlier, earlier))
    VersionStore(place, now=lambda: datetime.now(UTC))
    store = VersionStore(place)
    with store.stage() as staged:
        write(staged.data, "new")
        store.commit(staged, {"run_id": "r"})
    assert sorted((version / "part-0.parquet").read_text() for version in place.versions.iterdir()) == ["2", "new"]


def test_held_rows_of_a_retried_run_are_replaced_and_of_another_run_stay(place: TablePlace) -> None:
    first = publish(place, "one", held="bad", run_id="monday")
    assert first is not None
    again = publish(place, "two", held="bad", run_id="monday")
    other = publish(place, "three", held="worse", run_id="tuesday")
    assert not first.exists()
    assert sorted(batch.name for batch in place.quarantine.iterdir()) == sorted(b.name for b in (again, other) if b)
    assert publish(place, "four", run_id="monday") is None
    assert [batch.name for batch in place.quarantine.iterdir()] == [other.name if other else None]


# --- what is not ours -------------------------------------------------------------------------------------------------


def test_a_table_of_spark_is_adopted_with_its_rows(place: TablePlace) -> None:
    write(place.link, "theirs")
    (place.link / "_SUCCESS").touch()
    publish(place, "ours")
    assert readable(place) == "ours"
    assert place.link.is_symlink()
    assert sorted((version / "part-0.parquet").read_text() for version in place.versions.iterdir()) == [
        "ours",
        "theirs",
    ]


@pytest.mark.parametrize("stranger", ["notes.txt", "_delta_log/0.json", "src/main.py", ".git/config", "a=1/x.csv"])
def test_a_directory_that_is_no_parquet_table_is_left_alone(place: TablePlace, stranger: str) -> None:
    (place.link / stranger).parent.mkdir(parents=True)
    (place.link / stranger).write_text("mine")
    with pytest.raises(PublicationError, match="no Parquet table, it holds"):
        publish(place, "ours")
    assert (place.link / stranger).read_text() == "mine"


def test_a_file_or_a_foreign_link_in_its_place_is_left_alone(place: TablePlace, tmp_path: Path) -> None:
    place.link.parent.mkdir(parents=True)
    place.link.write_text("mine")
    with pytest.raises(PublicationError, match="it is a file"):
        publish(place, "ours")
    place.link.unlink()
    (tmp_path / "elsewhere").mkdir()
    place.link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PublicationError, match="a link that leads elsewhere"):
        publish(place, "ours")
    assert not any((tmp_path / "elsewhere").iterdir())


def test_a_link_on_the_way_does_not_lead_out_of_the_root(place: TablePlace, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    place.root.mkdir()
    (place.root / "weather").symlink_to(tmp_path / "outside")
    with pytest.raises(PublicationError, match="would not be below"):
        publish(place, "ours")
    assert not any((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("name", ["", "..", "../x", "a/../b", "/etc/x", "a//b", ".hidden", "_x", "a\\b", "a\0b", "k=v"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PublicationError, match="is no name for a table"):
        TablePlace(tmp_path, name)


# --- kills ------------------------------------------------------------------------------------------------------------

KILLED_AT_EVERY_STEP = textwrap.dedent(
    """
    import json, os, shutil, signal, sys
    from pathlib import Path
    from databox_contracts.spark.linking import link
    from databox_contracts.spark.partitioning import data_files
    from databox_contracts.spark.tables import TablePlace
    from databox_contracts.spark.versions import VersionStore

    def write(directory, text):
        directory.mkdir(parents=True)
        (directory / "part-0.parquet").write_text(text)

    def publish(place, text, adding=False):
        store = VersionStore(place)
        with store.stage() as staged:
            write(staged.data, text)
            write(staged.held, text)
            if adding:
                # As an append does, and a publish of some partitions: files of the version before, under a second name.
                base = store.base_directory(staged)
                for inside, names in data_files(base).items():
                    (staged.data / "old=1" / inside).mkdir(parents=True, exist_ok=True)
                    for name in names:
                        link(base / inside / name, staged.data / "old=1" / inside / name)
            store.commit(staged, {"run_id": text})

    def kill_before(step):
        # Every change to the file system goes through one of these.
        count = 0
        for name in ("rename", "replace", "symlink", "mkdir", "unlink", "rmdir", "open", "utime", "link"):
            real = getattr(os, name)
            def counting(*args, real=real, **kwargs):
                nonlocal count
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)
            setattr(os, name, counting)

    root, adopted, adding = Path(sys.argv[1]), sys.argv[2] == "adopted", sys.argv[3] == "append"
    found = []
    for step in range(1, 200):
        place = TablePlace(root / str(step), "t")
        if adopted:
            write(place.link, "old")
        else:
            publish(place, "old")
        child = os.fork()
        if child == 0:
            kill_before(step)
            publish(place, "new", adding)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            break
        VersionStore(place).recover_adoption()
        seen = (place.link / "part-0.parquet").read_text()
        beside = sorted(file.read_text() for file in place.link.glob("old=1/**/part-*"))
        held = sorted(batch.name for batch in place.quarantine.glob("batch=*")) if seen == "new" else []
        publish(place, "next")
        found.append(
            {
                "seen": seen,
                "held": held,
                "beside": beside,
                "after": (place.link / "part-0.parquet").read_text(),
                "staging": [entry.name for entry in place.staging.iterdir()],
                "rows held": sorted(
                    (batch / "part-0.parquet").read_text() for batch in place.quarantine.glob("batch=*")
                ),
                "versions": sorted((v / "part-0.parquet").read_text() for v in place.versions.iterdir()),
            }
        )
    print(json.dumps(found))
    """
)


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("before", ["ours", "adopted"])
def test_killed_before_any_step_leaves_the_old_or_the_new_table(tmp_path: Path, before: str, mode: str) -> None:
    command = [sys.executable, "-c", KILLED_AT_EVERY_STEP, str(tmp_path), before, mode]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert len(found) >= 20
    assert {case["seen"] for case in found} == {"old", "new"}
    old_held = [] if before == "adopted" else ["old"]
    for case in found:
        assert case["after"] == "next"
        assert case["staging"] == []
        # Whole or not at all: a new version that adds to the old one has its files from the first moment.
        assert case["beside"] == (["old"] if mode == "append" and case["seen"] == "new" else [])
        # What was held for a version nobody saw is gone with it; what was published kept its held rows.
        assert case["rows held"] == sorted([*old_held, "next", *(["new"] if case["seen"] == "new" else [])])
        assert case["versions"] == sorted(["old", "next", *(["new"] if case["seen"] == "new" else [])])
