"""A small loop to record: what it does depends on nothing but the teacher and the time-step."""

import contextlib
import sqlite3

import mastery

TABLES = ("chunks", "training", "evaluation", "tests", "scalars", "notes")


def make_teacher(seed=0, program=None, **settings):
    tasks = [
        mastery.Task("easy", 0, 1),
        mastery.Task("middle", 0, 1, after=("easy",)),
        mastery.Task("hard", 0, 1, after=("middle",)),
    ]
    return mastery.Teacher(mastery.Curriculum(tasks), program, seed=seed, **settings)


def play(teacher, upto, recorder=None, at=lambda step: None):
    """Update up to a time-step; yields nothing, and calls `at` after each."""
    while teacher.time_step < upto:
        step, task = teacher.time_step, teacher.sample()
        score = (step * 7 % 11) / 11 * min(1, step / 300)
        teacher.update({task: [score, score / 2]}, cost={task: 3 + step % 5})
        if recorder is not None:
            recorder.log(loss=1 / (step + 1))
            if step % 100 == 50:
                recorder.evaluate({"easy": score})
        at(teacher.time_step)


def rows(directory):
    """Everything that was written, but the seconds and the times of day."""
    found = {}
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db, db:
        for table in TABLES:
            columns = [c[1] for c in db.execute(f"PRAGMA table_info({table})")]
            named = ", ".join(c for c in columns if c not in ("seconds", "time"))
            found[table] = sorted(db.execute(f"SELECT {named} FROM {table}"), key=repr)
    return found
