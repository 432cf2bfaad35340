"""Drawings: the rails by hand, the SVG well formed and holding what it should."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from strategies import curricula

from mastery import Curriculum, MasteryError, Task
from mastery.drawing.axes import round_ticks
from mastery.drawing.pictures import bar, curriculum_svg, curriculum_text, curves_svg, sparkline

SVG = "{http://www.w3.org/2000/svg}"


def test_curves_with_gaps():
    x, values = np.arange(6.0), np.array([[np.nan], [1], [2], [np.nan], [3], [np.nan]])
    picture = curves_svg({"mr": (x, values)}, "frames", "return", [0, 1, 2, 3], "a task")
    (line,) = re.findall(r'<polyline points="([^"]*)"', picture)
    assert len(line.split()) == 2
    assert picture.count("<circle") == 1
    assert "a task" in picture


def test_ticks_are_round():
    assert round_ticks(9000).tolist() == [0, 2000, 4000, 6000, 8000]
    assert round_ticks(0.6, 4) == pytest.approx([0, 0.2, 0.4, 0.6])


def test_the_rails_of_obstructed_maze():
    expected = """\
obstructed-maze: 6 tasks, 7 edges, 4 levels

●       1Dl    0 … 0.5
│
├─●     1Dlh   0 … 0.5
│ │
● │     2Dl    0 … 0.5
│ │
│ ├─●   1Dlhb  0 … 0.5
│ │ │
●─╯ │   2Dlh   0 … 0.5
│   │
●───╯   2Dlhb  0 … 0.5"""
    assert curriculum_text(Curriculum.load("obstructed-maze")) == expected


def test_mastery_is_drawn_where_it_is_known():
    curriculum = Curriculum([Task("a"), Task("b", after=("a",))])
    text = curriculum_text(curriculum, {"a": 1.0, "b": 0.25})
    assert "a  0 … 1  ████████████ 100%" in text
    assert "b  0 … 1  ███░░░░░░░░░  25%" in text
    plain, known = curriculum_svg(curriculum), curriculum_svg(curriculum, {"a": 1.0, "b": 0.25})
    assert "25%" in known
    assert "%" not in plain.split("</style>")[1]
    fills = [r.get("fill") for r in ET.fromstring(known).iter(f"{SVG}rect")]
    assert fills[0] == "#086852"
    assert fills[0] != fills[1]


@given(curricula())
def test_every_task_and_edge_is_in_the_svg(curriculum):
    root = ET.fromstring(curriculum_svg(curriculum))
    assert {t.text for t in root.iter(f"{SVG}title")} == set(curriculum.names)
    assert len(list(root.iter(f"{SVG}path"))) == len(curriculum.edges) + 1  # and the arrow's tip
    boxes = [(r.get("x"), r.get("y")) for r in root.iter(f"{SVG}rect")]
    assert len(set(boxes)) == len(curriculum)
    assert len(curriculum_text(curriculum).splitlines()) == 2 * len(curriculum) + 1


def test_names_are_escaped():
    ET.fromstring(curriculum_svg(Curriculum([Task("<b>&\"'")])))


def test_large_curricula():
    assert len(curriculum_text(Curriculum.random(5000)).splitlines()) == 18
    ET.fromstring(curriculum_svg(Curriculum.random(300)))
    with pytest.raises(MasteryError, match="too many to draw"):
        curriculum_svg(Curriculum.random(2001))


def test_curves():
    x = np.arange(5)
    root = ET.fromstring(
        curves_svg({"<mr>": (x, np.ones((5, 3)) * x[:, None] / 4)}, "time-steps", "skill")
    )
    (line,) = root.iter(f"{SVG}polyline")
    points = [tuple(map(float, p.split(","))) for p in line.get("points").split()]
    assert len(points) == 5
    assert points[0][1] > points[-1][1]  # up is more


def test_bars_and_sparklines():
    assert bar(0.5, 4) == "██░░"
    assert bar(-1, 2) == "░░"
    assert bar(2, 2) == "██"
    assert sparkline([0.0, 1.0], 3) == " ▄█"
    assert sparkline([]) == ""
