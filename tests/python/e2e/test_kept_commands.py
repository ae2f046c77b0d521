"""``rankscope runs``, ``open`` and ``report`` on the record of a job that failed."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rankscope import record
from support.kept import job, kept
from support.runs import environment, python

FAILS = "fails.py"
CHROMIUM = next((found for name in ("chromium", "google-chrome", "chrome") if (found := shutil.which(name))), None)
needs_jinja = pytest.mark.skipif(importlib.util.find_spec("jinja2") is None, reason="jinja2 is not installed")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")
PROBE = (
    "<script>const root = document.documentElement;"
    " document.title = root.scrollWidth - root.clientWidth + ' over ' + innerWidth</script>"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run, whose rank has failed."""
    made = tmp_path_factory.mktemp("failed")
    kept(made, *python(job(FAILS), "coloured", "rank"))
    return made


def rankscope(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rankscope.cli", *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_runs_are_listed(folder: Path) -> None:
    done = rankscope(folder, "runs")
    assert done.returncode == 0 and done.stderr == ""
    [line] = done.stdout.splitlines()
    assert "exit 0" in line and "failure kept" in line and "fails.py coloured rank" in line
    [run] = [json.loads(line) for line in rankscope(folder, "runs", "--json").stdout.splitlines()]
    assert (run["exitCode"], run["state"], run["hasFailure"]) == (0, "ended", True)


def test_a_run_is_opened(folder: Path) -> None:
    done = rankscope(folder, "open")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and "\x1b" not in done.stdout
    assert lines[0].startswith("world 2 failed: ValueError: red  (pid ")
    assert "    loss = 3.5" in lines
    assert any(line.startswith("  driver fails.py: fails.py:") for line in lines)
    name = next((folder / record.RUNS).iterdir()).name
    for place in (name, str(record.RUNS / name)):
        assert rankscope(folder, "open", place).stdout == done.stdout
    dumps = [json.loads(line) for line in rankscope(folder, "open", "--json").stdout.splitlines()]
    assert [dump["label"] for dump in dumps] == ["world 2", "driver fails.py"]


def test_a_reader_that_has_seen_enough_is_no_error(folder: Path) -> None:
    command = f"'{sys.executable}' -m rankscope.cli open --json | head -c 10"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (len(done.stdout), done.stderr) == (10, "")


def test_old_runs_are_deleted_but_not_those_that_go_on(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / record.RUNS, tmp_path / record.RUNS)
    for number in range(3):
        record.write(_made(tmp_path, f"2020010{number}-000000-1-old"), {"exitCode": 0, "hub": None})
    goes_on = _made(tmp_path, "20190101-000000-1-on")
    record.write(goes_on, {"hub": {"pid": 1, "editor": "unix:/x"}})
    done = rankscope(tmp_path, "runs", "--prune", "1")
    assert done.stdout == "3 runs deleted\n"
    assert len(list((tmp_path / record.RUNS).iterdir())) == 2 and goes_on.exists()


def _made(base: Path, name: str) -> Path:
    folder = base / record.RUNS / name
    folder.mkdir(parents=True)
    return folder


@needs_jinja
def test_a_report_is_one_file_that_needs_no_other(folder: Path) -> None:
    done = rankscope(folder, "report", "--html", "out.html")
    assert (done.returncode, done.stdout) == (0, f"{folder / 'out.html'}\n")
    text = (folder / "out.html").read_text()
    assert "world 2 failed:" in text and f"fails.py:{_raised_at()}" in text
    assert "<script" not in text and "http://" not in text and "https://" not in text


def _raised_at() -> int:
    lines = Path(job(FAILS)).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if "[31mred" in line)


@needs_jinja
@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_report_fits_a_phone_and_a_desk(folder: Path, tmp_path: Path, width: int) -> None:
    rankscope(folder, "report", "--html", str(tmp_path / "out.html"))
    framed = tmp_path / "framed.html"  # a browser's window is not as narrow as a phone; a frame in it is
    inner = ((tmp_path / "out.html").read_text() + PROBE).replace("&", "&amp;").replace('"', "&quot;")
    framed.write_text(
        f'<iframe id="f" style="width:{width}px;height:800px;border:0" srcdoc="{inner}"></iframe><script>'
        'document.getElementById("f").onload = e => {document.title = e.target.contentDocument.title + " · "'
        " + e.target.contentDocument.querySelector('h1').innerText}</script>"
    )
    page = _browse("--dump-dom", framed, tmp_path)
    title = page.partition("<title>")[2].partition("</title>")[0]
    assert title == f"0 over {width} · world 2 failed: ValueError: red"


@needs_jinja
@needs_browser
def test_the_report_prints(folder: Path, tmp_path: Path) -> None:
    rankscope(folder, "report", "--html", str(tmp_path / "out.html"))
    _browse(f"--print-to-pdf={tmp_path / 'out.pdf'}", tmp_path / "out.html", tmp_path)
    assert (tmp_path / "out.pdf").read_bytes().startswith(b"%PDF-")


def _browse(what: str, page: Path, profile: Path) -> str:
    assert CHROMIUM is not None
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    own = ["--disable-component-update", f"--user-data-dir={profile / 'profile'}", "--window-size=1400,1000"]
    done = subprocess.run(
        [CHROMIUM, *quiet, *own, "--virtual-time-budget=3000", what, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["open"], "no-such-run"),
        (["open", "never"], "no-such-run"),
        (["open", "fine"], "no-failure"),
        pytest.param(["report", "fine"], "no-failure", marks=needs_jinja),
        pytest.param(["report", "failed", "--html", "no/such/folder/out.html"], "cannot-write", marks=needs_jinja),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, tmp_path: Path, arguments: list[str], code: str) -> None:
    record.write(_made(tmp_path, "fine"), {"exitCode": 0, "hub": None})
    if "failed" in arguments:
        shutil.copytree(next((folder / record.RUNS).iterdir()), tmp_path / record.RUNS / "failed")
    done = rankscope(tmp_path, *arguments, "--json")
    assert done.returncode == 2
    assert json.loads(done.stderr)["code"] == code
