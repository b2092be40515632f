"""What somebody sees who opens the example project in a browser: a real web server, a real Chromium.

`DATABOX_SCREENSHOTS` names a directory for what is shown in the README.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from databox_contracts.spark.server import stop_server

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

PROJECT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]

pytestmark = [pytest.mark.full, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: set CHROMIUM")]


def stop(process: subprocess.Popen[bytes]) -> None:
    children = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    process.wait(60)
    _, alive = psutil.wait_procs(children, timeout=30)
    for one in alive:
        one.kill()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The web server of the example project after a run of everything, in which the hourly weather is refused."""
    home = tmp_path_factory.mktemp("home")
    (home / "dagster_home").mkdir()
    (home / "dagster_home" / "dagster.yaml").write_text("telemetry: {enabled: false}\nnux: {enabled: false}\n")
    env = {**os.environ, "DATABOX_HOME": str(home), "DAGSTER_HOME": str(home / "dagster_home")}
    dagster = [sys.executable, "-m"]
    with (home / "log").open("wb") as log:
        job = [*dagster, "dagster", "job", "execute", "-f", "definitions.py", "-j", "everything"]
        ran = subprocess.run(job, cwd=PROJECT, env=env, stdout=log, stderr=subprocess.STDOUT, check=False)
        assert ran.returncode == 1, "the hourly weather breaks its contract"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [*dagster, "dagster_webserver", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, cwd=PROJECT, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            url = f"http://127.0.0.1:{port}"
            answers(url, server)
            yield url
        finally:
            stop(server)
            stop_server(home / "spark")


def answers(url: str, server: subprocess.Popen[bytes], seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert server.poll() is None
        try:
            with urllib.request.urlopen(url, timeout=10):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise AssertionError("the web server does not answer")


@pytest.fixture(scope="module")
def page(address: str) -> Iterator["sync_api.Page"]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1700, "height": 1100}, base_url=address)
        page.set_default_timeout(120_000)
        yield page
        browser.close()


def keep(page: "sync_api.Page", name: str) -> None:
    if "DATABOX_SCREENSHOTS" in os.environ:
        page.screenshot(path=Path(os.environ["DATABOX_SCREENSHOTS"]) / f"{name}.png")


def check_shown(page: "sync_api.Page", asset: str, check: str) -> str:
    page.goto(f"/assets/{asset}?view=checks&checkDetail={check}")
    page.get_by_text("Latest execution").wait_for()
    page.get_by_role("columnheader", name="failed_percent").or_(page.get_by_text("failed_percent")).first.wait_for()
    return str(page.locator("body").inner_text())


def test_a_refused_table_shows_which_rule_which_rows_and_which_value_broke(page: "sync_api.Page") -> None:
    text = check_shown(page, "weather/hourly", "contract_accuracy")
    for name, state in (
        ("contract_accuracy", "Failed"),
        ("contract_completeness", "Succeeded"),
        ("contract_uniqueness", "Failed"),
    ):
        assert f"{name}\n{state}" in text.replace(f"{name}\n{name}", name)
    assert "Contract Hourly weather at New York airports 1.0.0, owned by weather-platform" in text
    assert "published\nfalse" in text
    assert "rows_rejected\n26115" in text
    (row,) = [line for line in text.splitlines() if line.startswith("hourly.wind_speed.maximum\t")]
    assert row.split("\t")[:5] == ["hourly.wind_speed.maximum", "wind_speed", "failed", "error", "1"]
    assert row.split("\t")[-1] == "1048.36058"
    keep(page, "refused")


def test_a_quarantining_asset_warns_and_says_where_its_rows_are_held(page: "sync_api.Page") -> None:
    text = check_shown(page, "aviation/airports", "contract_conformity")
    assert "rows_published\n1455" in text
    assert "rows_quarantined\n3" in text
    assert "airports.quarantine/batch=" in text
    (row,) = [line for line in text.splitlines() if line.startswith("airports.tzone.invalid_count\t")]
    assert row.split("\t")[-1] == '"Asia/Chongqing"'


def test_an_asset_shows_its_owner_its_columns_and_its_contract(page: "sync_api.Page") -> None:
    page.goto("/assets/weather/hourly?view=overview")
    page.get_by_text("wind_gust").first.wait_for()
    text = page.locator("body").inner_text()
    for shown in ("weather-platform", "contract_version", "wind_speed", "maximum 200"):
        assert shown in text, shown
    keep(page, "asset")
