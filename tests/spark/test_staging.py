"""Places to write in: each is its writer's until it ends, whoever else begins meanwhile."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from databox_contracts.spark.staging import leased

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from databox_contracts.spark.staging import Staged

NOW = datetime(2024, 3, 1, tzinfo=UTC)


def another(staging: Path) -> AbstractContextManager[Staged]:
    return leased(staging, NOW, nullcontext, lambda: None)


def test_a_place_is_kept_while_others_come_and_go(tmp_path: Path) -> None:
    with another(tmp_path) as mine:
        mine.data.mkdir()
        with another(tmp_path) as other:
            assert other.directory != mine.directory
        assert mine.data.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_whoever_waits_for_the_lock_has_a_place_of_its_own_after_all(tmp_path: Path) -> None:
    @contextmanager
    def waiting() -> Iterator[None]:
        # Who has the lock begins and ends before this one gets it.
        with another(tmp_path):
            pass
        yield

    with leased(tmp_path, NOW, waiting, lambda: None) as mine:
        mine.data.mkdir()
        with another(tmp_path):
            assert mine.data.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_process_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "v1" / "data").mkdir(parents=True)
    (tmp_path / "v1.lock").touch()
    (tmp_path / "v2").mkdir()
    with another(tmp_path) as mine:
        assert sorted(path.name for path in tmp_path.iterdir()) == [mine.version, f"{mine.version}.lock"]


def test_a_place_that_cannot_be_had_leaves_nothing(tmp_path: Path) -> None:
    @contextmanager
    def refusing() -> Iterator[None]:
        raise TimeoutError
        yield

    with pytest.raises(TimeoutError), leased(tmp_path, NOW, refusing, lambda: None):
        pass
    assert list(tmp_path.iterdir()) == []
