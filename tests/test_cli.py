"""The command line as a user meets it: a real process each time."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from made_jobs import make_job, write_job

from mastery import Curriculum, MasteryError, Teacher
from mastery.cli import app, split_programs
from mastery.cli.arguments import check_folder, check_place, read_count
from mastery.programs.named import PROGRAMS
from mastery.programs.recipe import SETTINGS, Recipe


def run(*arguments, rc=0, **options):
    result = subprocess.run(
        [sys.executable, "-m", "mastery", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        **{"env": {**os.environ, "COLUMNS": "120"}, **options},
    )
    assert result.returncode == rc, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout if rc == 0 else result.stderr


def test_help_teaches():
    text = run("--help")
    for command in ("show", "simulate", "programs"):
        assert command in text
        assert "Usage" in run(command, "--help")
    assert "key-corridor" in run("simulate", "--help")


@pytest.mark.parametrize("command", [None, *(c.name for c in app.registered_commands)])
def test_flags_in_the_help_have_no_type(command):
    text = run(*filter(None, [command]), "--help")
    assert "--help" in text
    assert "bool" not in text.lower()


def test_show_draws_text_and_svg(tmp_path):
    svg = tmp_path / "maze.svg"
    text = run("show", "obstructed-maze", "--svg", svg)
    assert "●───╯   2Dlhb" in text
    assert svg.read_text().startswith("<svg")


def test_show_knows_the_mastery_of_a_saved_teacher(tmp_path):
    teacher = Teacher(Curriculum.load("key-corridor"), seed=0)
    for _ in range(10):
        teacher.update({"S3R1": 0.25})
    teacher.save(tmp_path / "t")
    assert re.search(
        r"S3R1  0 … 0.5  ██████░░░░░░  50%",
        run("show", "key-corridor", "--teacher", tmp_path / "t"),
    )
    assert "another curriculum" in run("show", "addition-3", "--teacher", tmp_path / "t", rc=2)


def test_programs_lists_everything():
    text = run("programs")
    for name in [*PROGRAMS, *SETTINGS]:
        assert name in text
    assert "δ" in run("programs", "mr:delta=0.7")


def in_terminal(width, *arguments, lines=60, **options):
    """What a command prints to a terminal of this width, and its exit code."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mastery", *map(str, arguments)],
        stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "dumb", "COLUMNS": str(width), "LINES": str(lines)},
        **options,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # how the other end of a terminal says that it is over
        while part := os.read(ours, 65536):
            seen += part
    os.close(ours)
    assert process.wait(timeout=120) == 0, seen.decode()
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("width", [80, 120])
def test_programs_cuts_and_breaks_no_name_or_value(width):
    text = in_terminal(width, "programs")
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    words = set(text.split())
    for name, entry in PROGRAMS.items():
        assert {name, entry.attention} <= words | {word.strip(",") for word in words}
        assert {f"{k}={v:g}" for k, v in Recipe.parse(name).settings.items() if v} <= words
    assert set(SETTINGS) <= words


def test_runs_cuts_and_breaks_no_name_or_value(tmp_path):
    write_job(tmp_path / f"a-job-with-{'a-long-' * 12}name", make_job(seeds=1, points=2), points=2)
    write_job(tmp_path / "[b] job", make_job(programs=["mr:delta=0.8,window=20", "gprop-linreg"]))
    names = sorted(str(path) for path in tmp_path.iterdir())
    values = (
        "mr:window=20,delta=0.8",
        "gprop-linreg",
        "384 of 384 frames",
        "32 of 32 frames",
        "finished",
    )
    for text in (in_terminal(80, "runs", tmp_path), in_terminal(400, "runs", tmp_path)):
        assert all(name in text.replace("\n", "") for name in names)
        assert all(value in text for value in values)
    piped = run("runs", tmp_path, env={**os.environ, "COLUMNS": "20"}).splitlines()
    assert len(piped) == 3  # a line each, whatever its length
    assert all(any(name in line for line in piped) for name in names)


def test_simulate_prints_a_table_and_writes_a_page(tmp_path):
    page = tmp_path / "page.html"
    text = run(
        "simulate", "blocked-unlock-pickup", "--program", "mr:delta=0.8,window=20",
        "--against", "uniform,mr:gamma_succ=0,power=4", "--seeds", 4, "-o", page,
    )  # fmt: skip
    for program in ("mr:window=20,delta=0.8", "uniform", "mr:power=4.0,gamma_succ=0.0"):
        assert re.search(rf"{re.escape(program)} +\d+ .* 4/4", text)
    assert "95% interval" in text
    assert str(page) in text.replace("\n", "")
    html = page.read_text()
    HTMLParser().feed(html)
    assert html.count("<svg") == 3
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")  # works offline


def test_simulate_tries_several_programs_as_train_does():
    text = run(
        "simulate", "addition-3", "--program", "mr:window=20,delta=0.8,uniform", "--against",
        "uniform", "--seeds", 2, "--backend", "numpy",
    )  # fmt: skip
    for program in ("mr:window=20,delta=0.8", "uniform"):
        assert len(re.findall(rf"{re.escape(program)} +\d+ .* 2/2", text)) == 1


def test_where_to_write_is_checked_before_the_work(tmp_path):
    file, new = tmp_path / "file", tmp_path / "new"
    file.touch()
    for good in (file, tmp_path / "other", Path("/dev/null"), None):
        check_place(good)
    check_place(new / "report.html", new=new)
    for bad, text in (
        (tmp_path, "it is a folder; give a file"),
        (new / "report.html", "a file in an existing folder"),
        (file / "report.html", "a file in an existing folder"),
        (Path("/proc/report.html"), "No such file or directory"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(MasteryError, match=f"cannot write {bad}: .*{text}"):
            check_place(bad)
    for good in (tmp_path, new, new / "deep" / "er"):
        check_folder(good)
    for bad in (file, file / "below", Path("/proc/x")):
        with pytest.raises(MasteryError, match=f"cannot write to {bad}: "):
            check_folder(bad)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_numbers_of_frames():
    texts = {"2M": 2 * 10**6, "1.5k": 1500, "2_000": 2000, "3e6": 3 * 10**6, "1g": 10**9}
    assert {text: read_count(text) for text in texts} == texts
    assert read_count("9223372036854775807") == 2**63 - 1
    for text in ("9223372036854775808", "9" * 400, "10000000000G"):
        with pytest.raises(MasteryError, match="too large; the most is 9,223,372,036,854,775,807"):
            read_count(text)


def test_simulate_without_jax_gives_the_same_kind_of_result():
    text = run("simulate", "addition-3", "--against", "uniform", "--seeds", 2, "--backend", "numpy")
    assert re.search(r"mr +\d+", text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "key-coridor"], "did you mean 'key-corridor'?"),
        (["show", "none.toml"], "cannot read none.toml"),
        (["show", "random-3000", "--svg", "x.svg"], "too many to draw"),
        (["simulate", "key-corridor", "--program", "mrr"], "did you mean 'mr'?"),
        (["simulate", "key-corridor", "--against", "uniform:x=1"], "no setting 'x'"),
        (["simulate", "key-corridor", "--learner", "nois=1"], "did you mean 'noise'?"),
        (["simulate", "key-corridor", "--learner", "noise=x"], "must be a number"),
        (["simulate", "random-6000"], "at most 5000 tasks"),
        (["simulate", "key-corridor", "--program", "mr,mr"], "program 'mr' is given twice"),
        (["simulate", "key-corridor", "--against", "mr,mr:delta=0.6"], "are the same; give each"),
        (["simulate", "key-corridor", "--program", ","], "there is no program: give one"),
        (["train", "key-corridor", "--program", "mr,mr"], "program 'mr' is given twice"),
        (["train", "key-corridor", "--seed", "4294967296"], "seeds go up to 4,294,967,295"),
        (["train", "key-corridor", "--frames", "9e99"], "the most is 9,223,372,036,854,775,807"),
        (["train", "key-corridor", "--frames", "9e15"], "the most is 4,398,046,494,720"),
        (["train", "key-corridor", "--report", "/proc/x.html"], "cannot write /proc/x.html: "),
        (["train", "key-corridor", "--out", "/dev/null/x"], "/dev/null is not a folder"),
        (["paper", "--redraw", "--out", "/dev/null"], "/dev/null is not a folder"),
        (["show", "key-corridor", "--svg", "/proc/x.svg"], "cannot write /proc/x.svg: "),
        (["programs", "mrr"], "did you mean 'mr'?"),
        (["show", "key-corridor", "--svg", "/no/such/folder/x.svg"], "cannot write"),
    ],
)
def test_wrong_input_is_one_line(arguments, message, tmp_path):
    error = run(*arguments, rc=2, cwd=tmp_path)
    assert message in error
    assert error.startswith("mastery: ")
    assert error.count("\n") == 1


def test_names_that_look_like_markup_or_odd_places_to_write_to(tmp_path):
    (tmp_path / "odd.toml").write_text('name = "[/foo]"\n[tasks."[/x]"]\n[tasks."<b>"]\n')
    text = run("simulate", "odd.toml", "--seeds", 1, "--steps", 3, "--against", "", cwd=tmp_path)
    assert "[/foo]" in text
    for where in (".", "", "no/such/x.html"):
        error = run("simulate", "odd.toml", "--steps", 3, "-o", where, rc=2, cwd=tmp_path)
        assert "cannot write" in error
    assert "cannot write" in run("show", "odd.toml", "--svg", ".", rc=2, cwd=tmp_path)
    assert run("show", "key-corridor", "--svg", "/dev/stdout").count("<svg") == 1


def test_output_that_cannot_be_shown_or_written():
    other = {"env": {**os.environ, "PYTHONIOENCODING": "cp1252"}, "encoding": "cp1252"}
    text = run("show", "key-corridor", **other)
    assert "?   S3R1" in text
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "mastery", "show", "key-corridor"],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "mastery: No space left on device\n"


def test_with_64_bit_jax():
    text = run("simulate", "addition-3", "--against", "exp3s", "--seeds", 2,
               env={**os.environ, "JAX_ENABLE_X64": "1"})  # fmt: skip
    assert re.search(r"mr +\d+", text)


def test_usage_errors_are_explained():
    assert "No such command" in run("shwo", rc=2)
    assert "seeds" in run("simulate", "key-corridor", "--seeds", "0", rc=2)


def test_a_curriculum_file_with_an_error_says_where(tmp_path):
    (tmp_path / "c.toml").write_text("[tasks.a]\n[tasks.b]\nafter = [a]\n")
    assert "line 3" in run("show", "c.toml", rc=2, cwd=tmp_path)


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    # a shell's background jobs ignore Ctrl-C, and so would this, were the tests run in one
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from mastery.__main__ import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "simulate", "random-100", "--program", "uniform",
         "--against", "target", "--seeds", "1", "--steps", "6000", "--backend", "numpy",
         "-o", "p.html"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    for line in process.stdout:
        if line.startswith("[2/2]"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "1 of 2 programs finished" in err
    assert "uniform" in out
    assert (tmp_path / "p.html").exists()
    assert "Traceback" not in err


def test_live_progress_in_a_terminal():
    """In a real (pseudo-)terminal there is a bar for the program and one for each task."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mastery", "simulate", "key-corridor", "--against", "uniform"],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"},
    )
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # how the other end of a terminal says that it is over
        while part := os.read(ours, 65536):
            seen += part
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = seen.decode(errors="replace")
    assert "time-steps" in text
    assert "S6R3" in text
    assert "░" in text
    assert "Share of tasks mastered" in text


def test_lists_of_programs_may_hold_settings():
    assert split_programs("mr:delta=0.8,window=20,uniform, sequential") == [
        "mr:delta=0.8,window=20",
        "uniform",
        "sequential",
    ]


@pytest.mark.parametrize("curriculum", ["blocked-unlock-pickup", "addition-3"])
def test_every_setting_of_a_learner_is_explained(curriculum):
    """`--set list` takes the explanation from the comment on the field's line."""
    lines = run("train", curriculum, "--set", "list").splitlines()
    assert len(lines) > 5
    assert all(re.fullmatch(r"\w+=\S+ +\S.*", line) for line in lines)
