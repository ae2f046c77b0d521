"""The lints on the source of real projects: what a thousand lines cost, and how often a rule is wrong.

The projects are those installed here and a few that pip downloads in the versions below (not run where it cannot).
Every finding there was looked at by hand: `REAL` are mistakes. Any other counts as a false positive.
"""

import subprocess
import sys
import sysconfig
import tempfile
import time
import tokenize
import zipfile
from pathlib import Path

from _measure import ROOT, Table

from rankscope.lsp.lints import Unreadable, lint

INSTALLED = ["torch", "ray", "accelerate", "tensordict"]
DOWNLOADED = ["verl==0.9.1", "trl==1.16.0", "megatron-core==0.16.1", "torchtitan==0.3.0", "pytorch-lightning==2.6.6"]
DOWNLOADS = ROOT / ".build" / "lint-projects"
# By the end of a path, and the rule: a script that makes process groups, ends, and never destroys them.
REAL = {
    ("accelerate/test_utils/scripts/external_deps/test_zero3_integration.py", "no-destroy-process-group"),
    ("scripts/converter_hf_to_mcore.py", "no-destroy-process-group"),
}
ROUNDS = 3
DOWNLOAD_SECONDS = 120


def downloaded(requirement, to):
    """The folder of a project's sources, or None where pip cannot have it."""
    folder = to / requirement
    if folder.exists():
        return folder
    with tempfile.TemporaryDirectory() as wheels:
        command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
        try:
            subprocess.run(
                [*command, "--only-binary=:all:", "-d", wheels, requirement],
                check=True,
                capture_output=True,
                timeout=DOWNLOAD_SECONDS,
            )
        except (subprocess.SubprocessError, OSError):
            return None
        (wheel,) = Path(wheels).glob("*.whl")
        with zipfile.ZipFile(wheel) as file:
            file.extractall(folder, [name for name in file.namelist() if name.endswith(".py")])
    return folder


def texts_of(folder):
    """Every readable source of a project."""
    for path in sorted(folder.rglob("*.py")):
        try:
            with tokenize.open(path) as file:
                yield path, file.read()
        except (SyntaxError, ValueError, OSError):
            pass


def main():
    site = Path(sysconfig.get_path("purelib"))
    projects = {name: site / name for name in INSTALLED}
    lacking = []
    for requirement in DOWNLOADED:
        folder = downloaded(requirement, DOWNLOADS)
        if folder is None:
            lacking.append(requirement)
        else:
            projects[requirement] = folder
    lines, wrong, right = 0, [], 0
    costs = [0.0] * ROUNDS
    for folder in projects.values():
        for path, text in texts_of(folder):
            lines += text.count("\n")
            for turn in range(ROUNDS):
                started = time.process_time()
                try:
                    found = lint(text)
                except Unreadable:
                    found = []
                costs[turn] += time.process_time() - started
            for problem in found:
                is_right = any(str(path).endswith(end) and problem.rule == rule for end, rule in REAL)
                right += is_right
                if not is_right:
                    wrong.append(f"{path}:{problem.node.lineno}: {problem.rule}: {problem.message}")
    print("\n".join(wrong))
    print(f"{lines:,} lines of {', '.join(projects)}: {right} mistakes found, {len(wrong)} false")
    if lacking:
        print(f"not run, as pip cannot have them: {', '.join(lacking)}")
    table = Table("lint: the rules on real projects")
    table.add("lint_ms_per_kloc", [1000 * cost / (lines / 1000) for cost in costs], "ms", "<= 15")
    table.add("lint_false_positives", [len(wrong) / (lines / 10_000)], "/10 kloc", "<= 1")
    table.show()


if __name__ == "__main__":
    main()
