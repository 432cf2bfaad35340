"""Clips of agents from several moments of training: which are made, and what they show."""

import base64
import io
import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packed import embedded
from PIL import Image
from test_page_server import ask, index, serving
from typer.testing import CliRunner

from mastery import Curriculum
from mastery.cli import app
from mastery.learners.ppo import PPOSettings
from mastery.minigrid.play import pictures, play
from mastery.page import clips
from mastery.page.clips import Wanted, make_clip, moment_of, plan_clips
from mastery.page.data import job_entry
from mastery.page.places import Place
from mastery.page.server import Server
from mastery.training.job import Job
from mastery.training.train import train

SMALL = PPOSettings(envs=4, frames=16, batch=32, ahead=2, bptt=2)  # 64 frames in an update


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Six chunks of 64 frames of two programs with three seeds."""
    path = tmp_path_factory.mktemp("clips") / "job"
    curriculum = Curriculum.load("blocked-unlock-pickup")
    programs = ("mr", "uniform")
    train(Job(curriculum, programs, 3, frames=384, settings=SMALL, chunk=1, evaluate_every=0), path)
    return path


def pictures_of(clip):
    with Image.open(io.BytesIO(base64.b64decode(clip["gif"]))) as image:
        return [image.seek(i) or np.asarray(image.convert("RGB")) for i in range(image.n_frames)]


def test_the_entry_says_what_can_be_played(job, tmp_path):
    entry = job_entry(Place(job, "job"))
    assert entry["moments"] == [0, 64, 128, 192, 256, 320, 384]
    assert entry["clip_runs"] == [0, 1, 3, 4]
    assert entry["checkpoint"]["frames"] == 384
    assert [moment_of(entry, 0, x) for x in (0, 63, 64, 500, None)] == [0, 0, 64, 384, 384]
    assert [moment_of(entry, 2, x) for x in (383, 384, None)] == [None, 384, 384]
    copy = shutil.copytree(job, tmp_path / "job")
    shutil.rmtree(copy / "agents")
    entry = job_entry(Place(copy, "job"))
    assert (entry["moments"], entry["clip_runs"], entry["clips"]) == ([384], [], True)
    assert moment_of(entry, 0) == 384


def test_which_clips_a_report_has(job):
    place = Place(job, "job")
    planned = plan_clips([job_entry(place)], [place])
    # the end and the beginning first; 128 and 256 are a third and two thirds of 384
    tasks = ["Unlock", "UnlockPickup", "BlockedUnlockPickup"]
    assert [(plan.wanted.at, plan.wanted.run, plan.wanted.task) for plan in planned] == [
        (at, run, task) for at in (384, 0, 128, 256) for run in (0, 3) for task in tasks
    ]
    assert planned[0].label == "mr on Unlock after 384 frames"


def test_a_task_has_one_level_for_all_moments_and_runs(job):
    moments = ((0, 0), (0, None), (3, 128))
    with clips.Player() as player:
        made = [player.clip(Wanted(job, "Unlock", run, at)) for run, at in moments]
    (level,) = {pictures_of(clip)[0].tobytes() for clip in made}
    expected = next(pictures(play("Unlock", seed=0, steps=1).states, 11, with_view=False))
    same = np.abs(np.frombuffer(level, np.uint8).astype(int) - expected.ravel())
    assert same.max() < 40  # the GIF has 64 colours
    other = next(pictures(play("Unlock", seed=1, steps=1).states, 11, with_view=False))
    assert np.abs(np.frombuffer(level, np.uint8).astype(int) - other.ravel()).max() > 100


def test_one_process_makes_the_same_clips_as_several(job):
    wanted = [
        Wanted(job, "Unlock", 0, 0),
        Wanted(job, "no task", 0, 0),
        Wanted(job, "Unlock", 3, 0),
    ]
    with clips.Player() as player:
        first, error, second = (player.clip(each) for each in wanted)
        process = player._process
        assert process.poll() is None
    assert process.poll() is not None
    assert first == make_clip(job, "Unlock", 0, 0)
    assert first["frames"] == 0
    assert first["text"].startswith("mr, seed 0: open the door; ")
    assert first["gif"] == second["gif"]  # of one seed, so the same agent
    assert "'no task'" in error["error"]
    assert len(base64.b64decode(first["gif"])) < 60_000
    assert len(pictures_of(first)) <= 121


def test_a_player_that_nobody_asks_ends_and_one_that_died_starts_again(job):
    with clips.Player(idle=0.05) as player:
        assert "gif" in player.clip(Wanted(job, "Unlock", 0, 0))
        player._timer.join()
        assert player._process is None
        player._idle = 60
        assert "gif" in player.clip(Wanted(job, "Unlock", 0, 0))
        player._process.kill()
        player._process.wait()
        assert "gif" in player.clip(Wanted(job, "Unlock", 0, 0))


def test_a_report_holds_them_by_task_run_and_moment(job, tmp_path):
    out = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["report", str(job), "-o", str(out), "--clips"])
    assert result.exit_code == 0, result.output
    (found,) = embedded(out, "index")["clips"].values()
    assert set(found) == {"Unlock", "UnlockPickup", "BlockedUnlockPickup"}
    for runs in found.values():
        assert {run: [clip["frames"] for clip in made] for run, made in runs.items()} == {
            "0": [0, 128, 256, 384],
            "3": [0, 128, 256, 384],
        }


def test_what_does_not_fit_is_left_out_and_counted(job, tmp_path, monkeypatch):
    out = tmp_path / "page.html"
    monkeypatch.setattr(clips, "BYTES", 1)
    result = CliRunner().invoke(app, ["report", str(job), "-o", str(out), "--clips"])
    assert "note: 24 of 24 clips were left out" in result.output
    assert embedded(out, "index")["clips"] == {}


def test_clips_need_a_report():
    result = CliRunner().invoke(app, ["train", "blocked-unlock-pickup", "--clips"])
    assert "give --report FILE as well" in str(result.exception)


def test_clips_that_cannot_be_made_are_refused_before_the_training(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)  # as if it were not installed
    out = ["--out", str(tmp_path / "job"), "--report", str(tmp_path / "page.html")]
    result = CliRunner().invoke(app, ["train", "blocked-unlock-pickup", *out, "--clips"])
    assert str(result.exception) == "a clip needs PIL: pip install 'mastery-curriculum[train]'"
    assert not (tmp_path / "job").exists()


def test_the_demo_installs_what_its_clips_need():
    root = Path(__file__).parent.parent.parent
    makefile = (root / "Makefile").read_text()
    extra = re.search(r"^\$\(VENV\)/\.train:.*\n.*'\.\[(\w+)\]'", makefile, re.M)
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = list(extras[extra[1]])
    for package in needed:  # it grows
        if own := re.fullmatch(rf"{project['name']}\[(\w+)\]", package):
            needed += extras[own[1]]
    assert any(package.startswith("pillow") for package in needed)


def test_the_server_plays_any_moment(job, tmp_path):
    copy = shutil.copytree(job, tmp_path / "job")
    with serving(Server([copy], port=0)) as server:
        (entry,) = index(server)["jobs"]

        def clip(where):
            status, _, body = ask(server, f"/clip/{entry['key']}/{where}")
            assert status == 200
            return json.loads(body)

        assert clip("0/3/200")["frames"] == 192
        assert clip("0/3") == clip("0/3/999999999999999999")
        assert clip("0/3")["frames"] == 384
        assert "was kept from that time" in clip("0/2/10")["error"]
        assert clip("0/2")["frames"] == 384
        for wrong in ("0/3/", "0/3/-1", "0/3/x", "0/3/1/1", "9/3/0", "0/9/0", "0/3/" + "9" * 20):
            assert ask(server, f"/clip/{entry['key']}/{wrong}")[0] == 404
