"""Files that earlier versions wrote can still be used.

`data/VERSION` was written by that version: a teacher of each of its programs after 30 updates on
obstructed-maze, with what it did next there; and a job of addition-3 that was stopped after the
first of three chunks.
"""

import json
import shutil
from pathlib import Path

import pytest

import mastery
from mastery.rundir.results import load_results

DATA = Path(__file__).parent / "data"
SAVED = sorted(DATA.glob("*/*.mastery"))


def test_there_are_teachers_of_every_program_of_0_1_0():
    assert len(SAVED) == 13


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_saved_teacher_goes_on_as_the_version_that_saved_it(path):
    expected = json.loads((path.parent / "expected.json").read_text())[path.stem]
    teacher = mastery.Teacher.load(path)
    assert teacher.time_step == 30
    assert teacher.probabilities == pytest.approx(expected["probabilities"], abs=1e-12)
    draws = []
    for i in range(20):
        draws.append(teacher.sample())
        # within the bounds, and so that no slope is 0 except for rounding
        teacher.update({draws[-1]: (i + 1) * 0.618 % 1 / 2})
    assert draws == expected["next draws"]
    assert teacher.mastery == pytest.approx(expected["mastery after them"], abs=1e-12)


def test_a_job_of_0_1_0_is_read_and_resumed(tmp_path):
    shutil.copytree(DATA / "0.1.0" / "job", tmp_path / "job")
    assert load_results(tmp_path / "job").frames.tolist() == [640]
    options = mastery.TrainOptions(elsewhere=True)  # it was begun on one kind of processor
    assert mastery.resume(tmp_path / "job", options).ended == "trained 1,920 examples per run"
    assert load_results(tmp_path / "job").frames.tolist() == [640, 1280, 1920]
