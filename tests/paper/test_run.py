"""The real thing, scaled down: trained, resumed, judged and drawn by the command line."""

import numpy as np
import pytest
from command import mastery

from mastery.paper.curves import load
from mastery.paper.experiments import PAPER_JOBS, chosen


def check_page(folder, names):
    page = (folder / "paper.html").read_text()
    assert "Scaled down" in page
    for name in names:
        curves = load(folder / "curves" / f"{name}.npz")
        part = PAPER_JOBS[name].job(0.01)
        assert list(curves.runs) == list(part.programs)
        assert (curves.returns[np.isfinite(curves.returns)] >= 0).all()
        assert np.allclose(curves.probability.sum(2), 1, atol=0.01)
        assert np.allclose(curves.share.sum(2), 1, atol=0.01)
        assert not np.isnan(curves.progress).any()
        assert curves.progress.any() or not np.nan_to_num(curves.returns).any()
        assert not np.isnan(curves.greedy).any()  # there was an evaluation at the end
        assert f"<code>{name}</code>" in page


def test_a_job_scaled_down_and_again(tmp_path):
    """As short as can be; the test below has all of them."""
    name = "addition-64"
    command = ["paper", name, "--scale", "0.002", "--out", tmp_path]
    text = mastery(*command)
    done = "8,320 examples"
    assert f"{name}: trained {done} per run" in text
    assert f"Page: {tmp_path / 'paper.html'}" in text
    check_page(tmp_path, [name])
    before = (tmp_path / name / "run.db").stat().st_mtime_ns
    assert f"trained {done} per run" in mastery(*command)  # there is nothing left to train
    assert (tmp_path / name / "run.db").stat().st_mtime_ns == before
    error = mastery("paper", name, "--scale", "0.1", "--out", tmp_path, rc=2)
    assert "holds another job (other" in error
    assert "give another folder with --out" in error


@pytest.mark.slow
def test_a_job_of_each_kind_scaled_down(tmp_path):
    """The agent of 2018, our own, and an LSTM that adds, each in a process of its own. (Episodes of
    BlockedUnlockPickup have the fewest steps.)"""
    names = ["blocked-unlock-pickup-2018", "blocked-unlock-pickup-today", "addition-64"]
    command = ["paper", *names, "--scale", "0.001", "--jobs", "2", "--out", tmp_path]
    text = mastery(*command)
    done = [
        f"{names[0]}: trained 10,240 frames per run",
        f"{names[1]}: trained 10,240 frames per run",
        "addition-64: trained 4,480 examples per run",
    ]
    for line in (*done, "addition-64: 640 examples (14%)", f"{names[1]}: 8.19k frames (20%)"):
        assert line in text  # progress too, with the job's name
    assert f"Page: {tmp_path / 'paper.html'}" in text
    check_page(tmp_path, names)
    runs = [len(load(tmp_path / "curves" / f"{name}.npz").seeds) for name in names]
    assert runs == [4, 4, 1]
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    assert {"blocked-unlock-pickup-2018-mr", "blocked-unlock-pickup-today-mr", "addition"} <= drawn
    again = mastery(*command)
    assert all(line in again for line in done)
    assert "%)" not in again  # there was nothing left to train


@pytest.mark.slow
def test_everything_scaled_down(tmp_path):
    """Every experiment, claim and figure: three minutes on two cores that are free."""
    mastery("paper", "--scale", "0.01", "--out", tmp_path)
    check_page(tmp_path, [part.name for part in chosen([])])
    assert len(list((tmp_path / "figures").glob("*.svg"))) >= 17
