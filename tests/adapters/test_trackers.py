"""What a teacher does, as other tools read it back."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from mastery import CheckpointError, Curriculum, Task, Teacher
from mastery.adapters.trackers import TensorBoard, scalars, track

CURRICULUM = Curriculum([Task("easy", 0, 1), Task("hard: 2+2", 0, 1, after=("easy",))])


def taught():
    teacher = Teacher(CURRICULUM, "mr", seed=0)
    for score in (0.0, 0.5):
        teacher.update({"easy": score})
    return teacher


def test_the_scalars_are_the_teachers():
    teacher = taught()
    assert scalars(teacher) == {
        "mastery/easy": teacher.mastery["easy"],
        "mastery/hard: 2_2": 0.0,
        "support/easy": 2.0,  # returns behind that mastery
        "support/hard: 2_2": 0.0,
        "probability/easy": teacher.probabilities["easy"],
        "probability/hard: 2_2": teacher.probabilities["hard: 2+2"],
    }
    of_returns = scalars(teacher, {"easy": [0.25, 0.75], "hard: 2+2": []})
    assert of_returns["return/easy"] == 0.5
    assert of_returns["episodes/easy"] == 2
    assert "return/hard: 2_2" not in of_returns


def test_any_function_can_log():
    calls = []
    track(taught(), lambda found, step: calls.append((found, step)))
    track(taught(), lambda found, step: calls.append((found, step)), step=77)
    assert [step for _, step in calls] == [2, 77]
    assert calls[0][0] == scalars(taught())


def test_tensorboard_reads_the_events_as_they_come(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    teacher = taught()
    folder = tmp_path / "deep" / "run"
    board = TensorBoard(folder)
    track(teacher, board.log)
    reader = accumulator.EventAccumulator(str(folder))
    reader.Reload()
    assert [e.step for e in reader.Scalars("mastery/easy")] == [2]
    teacher.update({"easy": 1.0})
    track(teacher, board.log, step=10)
    track(teacher, TensorBoard(folder).log, step=11)  # a run that goes on
    reader.Reload()
    assert [e.step for e in reader.Scalars("probability/easy")] == [2, 10, 11]
    assert reader.Scalars("probability/easy")[1].value == pytest.approx(
        teacher.probabilities["easy"]
    )
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="cannot write"):
        TensorBoard(tmp_path / "file").log({}, step=12)


def run(code, tmp_path, **environment):
    """In a process of its own: these tools start services and set things up for a whole process."""
    before = """
import json, sys
from mastery import *
from mastery.adapters.trackers import track
teacher = Teacher(Curriculum([Task("easy"), Task("hard: 2+2", after=("easy",))]), seed=0)
teacher.update({"easy": 0.5})
"""
    done = subprocess.run(
        [sys.executable, "-c", before + code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_mlflow(tmp_path):
    pytest.importorskip("mlflow")
    found = run(
        """
import mlflow
mlflow.set_tracking_uri("file:./mlruns")
with mlflow.start_run() as run:
    track(teacher, mlflow.log_metrics, step=5)
print(json.dumps(mlflow.get_run(run.info.run_id).data.metrics))
""",
        tmp_path,
        MLFLOW_ALLOW_FILE_STORE="true",
    )
    assert found["probability/easy"] + found["probability/hard: 2_2"] == pytest.approx(1)


@pytest.mark.slow
def test_weights_and_biases(tmp_path):
    pytest.importorskip("wandb")
    found = run(
        """
import wandb
with wandb.init(mode="offline", dir=".") as run:
    track(teacher, wandb.log, step=5)
    wandb.log({}, step=6)  # a step is there once the next one begins
    print(json.dumps({key: run.summary[key] for key in run.summary.keys() if "/" in key}))
""",
        tmp_path,
        WANDB_SILENT="true",
    )
    assert found["probability/easy"] + found["probability/hard: 2_2"] == pytest.approx(1)
