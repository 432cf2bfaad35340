"""The page of a job: well formed, whole, and with the numbers that were written by hand."""

import dataclasses
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_jobs import job, many_points, two_points

from mastery import Curriculum
from mastery.draw import curves_svg
from mastery.learners.ppo import Settings
from mastery.plot import range_ticks, round_ticks
from mastery.runs.charts import MOST, mastery_svg, shares_svg
from mastery.runs.export import export_csv, export_tensorboard
from mastery.runs.job import Job
from mastery.runs.report import job_page
from mastery.runs.results import list_jobs, load_results
from mastery.runs.store import Store
from mastery.runs.train import train

EMPTY = {"meta", "br", "!doctype"}  # elements without an end


class Reader(HTMLParser):
    """Fails where an element is not closed; keeps the text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text = [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def page_of(directory):
    page = job_page(load_results(directory))
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")  # works offline
    assert "<script" not in page
    assert "nan" not in re.findall(r'(?:points|[xy]\d?|width|height)="([^"]*)"', page)
    return page, "".join(Reader(page).text)


def cells(page, task):
    """The rows of a task in the table, as text."""
    table = re.search(r"<table>.*?</table>", page, re.S)[0]
    rows = [re.sub(r"<[^>]*>", "|", row) for row in re.findall(r"<tr.*?</tr>", table, re.S)]
    start = next(i for i, row in enumerate(rows) if f"|{task}|" in row)
    return [[c.strip() for c in row.split("|") if c.strip()] for row in rows[start : start + 2]]


def test_the_table_by_hand(tmp_path):
    two_points(tmp_path)
    page, text = page_of(tmp_path)
    # greedy 0.5 and 0.75; sampled 0.5 and 1; training 2.5 / 4 episodes and 3 / 4; frames 20, 20
    assert cells(page, "easy")[0] == [
        "easy", "mr", "0.62", "0.56 … 0.69", "0.75", "0.62 … 0.88", "0.69", "0.66 … 0.72", "20",
    ]  # fmt: skip
    # greedy 0, 0; sampled 0, 0; training 0.25 / 2 and 0 / 1; frames 16, 16
    assert cells(page, "hard")[1] == [
        "uniform", "0.00", "0.00 … 0.00", "0.00", "0.00 … 0.00", "0.06", "0.03 … 0.09", "16",
    ]  # fmt: skip
    assert cells(page, "all tasks")[1][:3] == ["uniform", "0.09", "0.08 … 0.11"]  # 0.125, 0.0625
    assert "2 tasks · mr, uniform · 2 seeds · stopped after 32 of 48 frames a run" in text
    assert "mastery train & see" in text
    assert "learning_rate 0.0007" in text
    assert "128 frames together in 5 seconds: 26 frames a second" in text  # 4 · 32 / 5


def test_a_task_that_was_never_played_has_no_return(tmp_path):
    many_points(tmp_path, job(seeds=1), 3, evaluated=False)
    page, text = page_of(tmp_path)
    assert cells(page, "hard")[0][2] == "–"
    assert cells(page, "all tasks")[0][2] == "–"
    assert "last evaluation" not in text


def test_one_seed_has_no_quartiles(tmp_path):
    many_points(tmp_path, job(seeds=1), 6)
    page, text = page_of(tmp_path)
    assert "<small>" not in page
    assert "quartiles" not in text
    assert 'opacity="0.16"' not in page  # the bands
    assert "finished: all frames are done" in text
    many_points(tmp_path / "two", job(seeds=2), 6)
    assert 'opacity="0.16"' in page_of(tmp_path / "two")[0]


def test_one_chunk_is_drawn_as_points(tmp_path):
    many_points(tmp_path, job(), 1)
    page, _ = page_of(tmp_path)
    assert "<circle" in page
    assert "<polyline" not in page


def test_none_yet(tmp_path):
    Store(tmp_path, job()).close()
    page, text = page_of(tmp_path)
    assert "Nothing to see yet" in text
    assert "stopped after 0 of 48 frames" in text
    assert page.count("<svg") == 1  # the curriculum


def test_training_now(tmp_path):
    with Store(tmp_path, job()):
        assert "training now: 0 of 48 frames a run" in page_of(tmp_path)[1]


def test_eighteen_tasks_and_three_programs(tmp_path):
    names = tuple(f"task-{i}" for i in range(18))
    many_points(tmp_path, job(names, ("mr", "gprop-linreg", "uniform")), 12)
    page, text = page_of(tmp_path)
    assert all(text.count(name) > 3 for name in names)
    # returns: training and two policies; probabilities; mastery: curves and programs; the graph
    assert page.count("<svg xmlns") == 3 * 18 + 3 + 1 + 3 + 1
    assert page.count('rowspan="3"') == 19


def test_names_are_escaped(tmp_path):
    many_points(tmp_path, job(("<b>&\"'", "{0}")), 4)
    page, text = page_of(tmp_path)
    assert "<b>&\"'" in text
    assert "{0}" in text
    assert "<b>" not in page


def test_the_page_of_a_long_job_is_not_long(tmp_path):
    many_points(tmp_path, job(("a", "b", "c")), 30)
    results = load_results(tmp_path)
    assert "million" not in job_page(results)
    arrays = ("probability", "mastery", "returns", "episodes", "played")
    longer = {name: np.tile(getattr(results, name), (100, 1, 1)) for name in arrays}
    for name in ("steps", "frames", "seconds"):
        longer[name] = np.arange(1, 3001) * 1000
    page = job_page(dataclasses.replace(results, **longer))
    assert len(page) < 300_000
    assert "million frames" in page


def test_each_task_has_its_own_scale_unless_all_are_alike(tmp_path):
    many_points(tmp_path, job(seeds=1), 6, evaluated=False)
    results = load_results(tmp_path)
    bounds = {"names": ["a", "b"], "edges": [], "settings": {}, "name": "two"}
    results.returns[:, :, 0] *= -200
    results.returns[:, :, 1] = 0.5
    of = type(results.curriculum).from_dict
    alike = of({**bounds, "minimum": [0, 0], "maximum": [1, 1]})
    apart = of({**bounds, "minimum": [-200, 0], "maximum": [0, 1]})
    for curriculum, count in ((alike, 2), (apart, 1)):
        page = job_page(dataclasses.replace(results, curriculum=curriculum))
        assert page.count(">-200</text>") == count


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_the_ticks_of_a_range_hold_it(low, length):
    ticks = range_ticks(low, low + length)
    slack = 1e-5 * (ticks[1] - ticks[0])
    assert ticks[0] <= low + slack
    assert ticks[-1] >= low + length - slack
    assert 2 <= len(ticks) <= 6
    assert ticks == sorted(set(ticks))


def test_ticks_are_round():
    assert range_ticks(0, 0.9) == [0, 0.25, 0.5, 0.75, 1]
    assert range_ticks(-200, -31) == [-200, -150, -100, -50, 0]
    assert range_ticks(0, 0) == [-0.5, -0.25, 0, 0.25, 0.5]  # room around a single number
    assert round_ticks(9000).tolist() == [0, 2000, 4000, 6000, 8000]
    assert round_ticks(0.6, 4) == pytest.approx([0, 0.2, 0.4, 0.6])


def test_curves_with_gaps():
    x, values = np.arange(6.0), np.array([[np.nan], [1], [2], [np.nan], [3], [np.nan]])
    picture = curves_svg({"mr": (x, values)}, "frames", "return", [0, 1, 2, 3], "a task")
    (line,) = re.findall(r'<polyline points="([^"]*)"', picture)
    assert len(line.split()) == 2
    assert picture.count("<circle") == 1
    assert "a task" in picture


def test_shares_fill_the_picture():
    x, shares = np.arange(1, 501), np.tile([0.5, 0.25, 0.25], (500, 1))
    picture = shares_svg(x, shares, ["a", "b", "<c>"], "mr")
    first, second, third = (
        np.array([p.split(",") for p in points.split()], float)
        for points in re.findall(r'<polygon points="([^"]*)"', picture)
    )
    assert len(first) == 4 * MOST
    bottom, top = first[:, 1].max(), third[:, 1].min()
    assert first[:, 1].min() == second[:, 1].max() == (bottom + top) / 2  # the first half
    assert third[:, 1].max() == second[:, 1].min()


def test_mastery_that_stays_the_same_is_one_mark():
    mastery = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    picture = mastery_svg(np.array([1, 2, 4]), mastery, ["a", "b"], "mr")
    rects = re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)" .*? fill="(.*?)"', picture)
    (x0, whole, light), (x2, half, dark), (x4, same, one) = rects  # each to the end
    assert float(whole) == float(same) == 2 * float(half)
    assert float(x2) - float(x0) == pytest.approx(float(half))  # from frame 2 of 4
    assert x0 == x4
    assert light != dark == one == "#086852"


@pytest.mark.slow
def test_a_job_that_was_really_trained(tmp_path):
    the_job = Job(
        Curriculum.load("blocked-unlock-pickup"), ("mr", "uniform"), seeds=2, frames=1024,
        settings=Settings(envs=4, frames=32, batch=32, ahead=2, width=8), chunk=2, episodes=2,
        evaluate_every=512,
    )  # fmt: skip
    train(the_job, tmp_path / "run", command="mastery train blocked-unlock-pickup")
    results = load_results(tmp_path / "run")
    assert results.frames.tolist() == [256, 512, 768, 1024]
    assert (results.played.sum(axis=2) == 256).all()
    assert results.probability.sum(axis=2) == pytest.approx(1, abs=1e-5)
    assert results.probability[:, 2:] == pytest.approx(1 / 3, abs=1e-5)
    assert results.evaluations["greedy"].frames.tolist() == [512, 1024]
    assert "finished: 1,024 frames a run are done" in page_of(tmp_path / "run")[1]
    (summary,) = list_jobs(tmp_path)
    assert summary.frames == summary.total == 1024
    assert len(export_csv(results, tmp_path / "x.csv")) == 2
    assert len(export_tensorboard(results, tmp_path / "logs")) == 4
