"""The live view of a job in a terminal says what its numbers average over."""

import io

import numpy as np
import pytest
from rich.console import Console

from mastery.cli.live import progress_view
from mastery.training.train import Means, Progress

TASKS = ("easy", "middle", "hard")


def seen(programs, height=40, runs=2):
    """What a terminal of 80 columns shows of a job whose programs have these masteries."""
    each = {
        name: Means(np.full(3, m), np.full(3, m / 2), np.full(3, 1 / 3), runs)
        for name, m in programs.items()
    }
    mean = np.full(3, np.mean(list(programs.values())))
    state = Progress(5, 10, 50_000, 1000.0, mean, mean / 2, np.full(3, 1 / 3), each)
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=80, height=height, color_system=None)
    with progress_view(console, TASKS, "frames") as show:
        show(state)
    return text.getvalue()


def test_each_program_has_a_table():
    text = seen({"mr": 0.8, "uniform": 0.2})
    assert "mean over 2 seeds" in text
    assert "80%" in text
    assert "20%" in text
    assert "50%" in text  # of the bar: half of the updates
    assert text.count("share of training") == 2
    assert "mean over 2 programs" not in text


def test_where_there_is_no_room_the_mean_over_programs_says_so():
    text = seen({"mr": 0.8, "uniform": 0.2}, height=10)
    assert "mean over 2 programs × 2 seeds" in text
    assert "50%" in text
    assert text.count("share of training") == 1


@pytest.mark.parametrize(("runs", "said"), [(1, False), (3, True)])
def test_one_run_is_no_mean(runs, said):
    text = seen({"mr": 0.8}, runs=runs)
    assert ("mean over 3 seeds" in text) == said
    assert "programs" not in text
