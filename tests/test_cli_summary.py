"""The end of `mastery train`: the sentence that compares programs, against sentences by hand."""

import numpy as np

from mastery.cli.summary import story
from mastery.rundir.where import Account

NEVER = np.inf
TASKS = ("easy", "middle", "hard")


def made(times, spent=(0.1, 0.6, 0.3)):
    """An account of runs that learned the tasks at these times."""
    times = np.array(times, float)
    n = times.shape[1]
    return Account(times, np.zeros(n), np.full(n, 1 / n), np.array(spent))


def test_the_sentence_says_where_training_went_and_who_learned_what_when():
    accounts = {
        "mr": made([[100e3, 500e3, 1.2e6], [200e3, 400e3, 1.73e6]], (0.17, 0.79, 0.04)),
        "uniform": made([[400e3, NEVER, NEVER], [600e3, 1.9e6, NEVER]], (0.02, 0.15, 0.83)),
    }
    assert story(accounts, TASKS, "frames") == (
        "mr spent 79 % of its training on tasks that could be learned and 4 % on tasks out of "
        "reach, uniform 15 % and 83 %; "
        "mr learned 3 of 3 tasks, hard after 1.73M frames in 2 of 2 runs; "
        "uniform learned 1 of 3 tasks, but not hard."
    )


def test_a_task_that_no_program_learned_is_named():
    accounts = {"mr": made([[100, 900, NEVER]]), "uniform": made([[NEVER, NEVER, NEVER]])}
    assert story(accounts, TASKS, "frames").endswith(
        "; mr learned 2 of 3 tasks, middle after 900 frames; uniform learned 0 of 3 tasks; "
        "no program learned hard."
    )


def test_a_task_learned_in_some_runs_only_says_in_how_many():
    # the time is of the run that learned it; half of the runs are not enough to count it
    accounts = {"mr": made([[100, 200, 300], [100, 200, NEVER]]), "auto": made([[1, 2, 3]])}
    assert "; mr learned 2 of 3 tasks, and hard in 1 of 2 runs, after 300 frames; auto" in story(
        accounts, TASKS, "frames"
    )
    accounts = {"mr": made([[100, NEVER, NEVER], [NEVER] * 3]), "auto": made([[NEVER] * 3])}
    assert story(accounts, TASKS, "frames").endswith(
        "; mr learned easy in 1 of 2 runs, after 100 frames; auto learned 0 of 3 tasks; "
        "no program learned hard."
    )


def test_nobody_learned_anything():
    accounts = {name: made([[NEVER, NEVER, NEVER]]) for name in ("mr", "uniform")}
    assert story(accounts, TASKS, "frames").endswith("; no program learned a task.")


def test_many_programs_are_counted_not_named():
    accounts = {f"p{i}": made([[1, 2, 3]]) for i in range(8)}
    text = story(accounts, TASKS, "examples")
    assert "p5 learned 3 of 3 tasks, hard after 3 examples" in text
    assert "p6" not in text
    assert text.endswith(" The table above has the other 2.")
