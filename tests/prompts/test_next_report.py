"""Prompts: tickets, late and doubled reports, parts, time-steps, other prompts and tasks."""

import copy
import threading

import numpy as np
import pytest

from mastery import Curriculum, MasteryError, MasteryWarning, Prompts, ReturnsError, Task, Teacher

TASKS = Curriculum([Task("a"), Task("b", 0, 2)])
LABELS = ["a"] * 6 + ["b"] * 6


def make(curriculum=TASKS, labels=LABELS, program="uniform", **settings):
    teacher = Teacher(curriculum, program, seed=1)
    return Prompts(range(len(labels)), teacher, labels, **({"seed": 2} | settings))


def test_a_batch_names_ids_tasks_tickets_and_completions():
    prompts = make(completions=4)
    batch = prompts.next(5)
    assert len(batch) == 5
    for draw in batch:
        assert draw.task == LABELS[draw.id]
        assert draw.completions == 4
    assert batch.tickets.tolist() == [0, 1, 2, 3, 4]
    assert prompts.next(2).tickets.tolist() == [5, 6]


def test_labels_are_a_list_a_column_a_key_or_an_attribute():
    class Table:
        column_names = ("task",)

        def __len__(self):
            return 2

        def __getitem__(self, name):
            return {"task": ["a", "b"]}[name]

    rows = [{"task": "a"}, {"task": "b"}]
    teacher = Teacher(TASKS, "uniform")
    for given in (Prompts(Table(), teacher), Prompts(rows, teacher, "task")):
        assert [row["task"] for row in given.explain()] == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": {"a": 1}}, "labels is .* one task name per example"),
        ({"labels": ["a", "b"]}, "2 labels for 12 examples"),
        ({"labels": ["a"] * 11 + ["c"]}, "example 11 has the label 'c', which is not a task"),
        ({"labels": ["a"] * 12}, "no prompt of task 'b'"),
        ({"labels": "kind"}, "no column or attribute 'kind'"),
        ({"within": "best"}, "within is 'best'"),
        ({"even": 0}, "even is 0; it must be a number from 0.01 to 1"),
        ({"strength": "x"}, "strength is 'x'"),
        ({"completions": (4, 2)}, "completions is 2"),
        ({"completions": (1, 2, 3)}, "completions is"),
        ({"update_every": 0}, "update_every is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"teacher": "mr"}, "Prompts needs a Teacher"),
    ],
)
def test_wrong_use_is_refused(change, message):
    teacher = change.pop("teacher", None) or Teacher(TASKS, "uniform")
    with pytest.raises(MasteryError, match=message):
        Prompts(range(12), teacher, **({"labels": LABELS} | change))


def test_the_teacher_hears_each_group_once():
    """Late, out of order, in parts and twice, beside a teacher that is told the same at once."""
    prompts, twin = make(update_every=6), Teacher(TASKS, "uniform", seed=1)
    batch = prompts.next(6)
    rewards = [[0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [2.0, 2.0], [0.5, 1.5]]
    order = [4, 0, 2, 5, 1, 3]
    for i in order[:5]:
        assert prompts.report(batch.ids[[i]], [rewards[i]], tickets=batch.tickets[[i]]) == 1
    assert prompts.teacher.time_step == 0
    with pytest.warns(MasteryWarning, match="is ignored: no draw of it waits"):
        again = prompts.report(batch.ids[[4]], [rewards[4]], tickets=batch.tickets[[4]])
    assert (again, prompts.ignored, prompts.waiting) == (0, 1, 1)
    i = order[5]
    for part, final in ((rewards[i][:1], False), (rewards[i][1:], True)):
        prompts.report(batch.ids[[i]], [part], tickets=batch.tickets[[i]], final=final)
    told = {}
    for i in order:
        told.setdefault(batch.tasks[i], []).extend(rewards[i])
    twin.update(told)
    assert prompts.teacher.time_step == 1
    assert prompts.teacher.mastery == twin.mastery
    prompts.report(batch, rewards)
    assert (prompts.ignored, prompts.teacher.time_step) == (7, 1)


def test_without_tickets_the_oldest_draw_of_a_prompt_is_meant():
    prompts = make(labels=["a", "b"], update_every=None)
    batch = prompts.next(6)
    ids = batch.ids.tolist()
    assert ids.count(0) == 3
    assert prompts.report([0, 0], [[1.0], [1.0]]) == 2
    left = [t for i, t in zip(ids, batch.tickets.tolist(), strict=True) if i == 0][2:]
    assert list(prompts._tickets.waiting)[-1] in (*left, batch.tickets[-1])
    with pytest.warns(MasteryWarning):
        assert prompts.report([0, 0], [[1.0], [1.0]]) == 1


def test_a_ticket_of_another_prompt_is_ignored():
    """As after a crash: the numbers of a lost run come again, for other prompts."""
    prompts = make()
    batch = prompts.next(2)
    other = next(i for i in range(12) if i not in batch.ids)
    with pytest.warns(MasteryWarning):
        assert prompts.report([other], [[1.0]], tickets=batch.tickets[:1]) == 0
    assert prompts.waiting == 2


def test_a_time_step_is_some_groups_or_when_told():
    prompts = make(update_every=4)
    batch = prompts.next(10)
    prompts.report(batch.ids[:3], [[1.0]] * 3, tickets=batch.tickets[:3])
    assert prompts.teacher.time_step == 0
    prompts.report(batch.ids[3:], [[1.0]] * 7, tickets=batch.tickets[3:])  # one, not two
    assert prompts.teacher.time_step == 1
    by_hand = make(update_every=None)
    by_hand.report(by_hand.next(10), [[1.0]] * 10)
    assert by_hand.teacher.time_step == 0
    by_hand.update()
    by_hand.update()  # nothing was reported since
    assert by_hand.teacher.time_step == 1


def test_tokens_are_the_cost():
    prompts = make(program="uniform:by_cost=1", update_every=None, labels=["a", "b"])
    for _ in range(50):
        batch = prompts.next(4)
        tokens = [[30.0, 30.0] if task == "a" else 20 for task in batch.tasks]
        prompts.report(batch, [[1.0, 0.0]] * 4, tokens=tokens)
        prompts.update()
    p = prompts.teacher.probabilities  # 30 tokens a completion against 10
    assert p["b"] / p["a"] == pytest.approx(3, rel=0.05)
    with pytest.raises(ReturnsError, match="some reports have tokens and others do not"):
        prompts.report(prompts.next(1), [[1.0]])


@pytest.mark.parametrize(
    ("ids", "rewards", "more", "message"),
    [
        ([99], [[1.0]], {}, "there is no prompt 99; ids are from 0 to 11"),
        ([0.5], [[1.0]], {}, "it must be a list of prompts' ids"),
        ([0], [[1.0], [2.0]], {}, "there are 2 rewards for 1 prompts"),
        ([0], 1.0, {}, "rewards is 1.0; it must be a list"),
        ([0], [["x"]], {}, "a reward must be a number"),
        ([0], [[float("nan")]], {}, "prompt 0: a reward is nan"),
        ([0], [[1.0]], {"tokens": [-3]}, "prompt 0: its tokens are -3"),
        ([0], [[1.0]], {"tokens": [1, 2]}, "2 tokens for 1 prompts"),
        ([0], [[1.0]], {"tickets": [1, 2]}, "2 tickets for 1 prompts"),
        ([0], [[1.0]], {"tickets": ["x"]}, "tickets is"),
    ],
)
def test_a_wrong_report_changes_nothing(ids, rewards, more, message):
    prompts = make()
    prompts.next(12)
    before = repr(prompts.state_dict())
    with pytest.raises(MasteryError, match=message):
        prompts.report(ids, rewards, **more)
    assert repr(prompts.state_dict()) == before


def test_a_group_without_rewards_closes_its_draw():
    prompts = make(update_every=1)
    batch = prompts.next(1)
    assert prompts.report(batch, [[]]) == 1
    assert (prompts.waiting, prompts.teacher.time_step) == (0, 0)


def test_draws_that_are_never_reported_are_given_up(monkeypatch):
    monkeypatch.setattr("mastery.prompts.tickets.MOST", 10)
    prompts = make()
    first = prompts.next(8)
    prompts.next(8)
    assert prompts.waiting == 10
    assert int(prompts._pool.flying.sum()) == 10
    with pytest.warns(MasteryWarning):
        assert prompts.report(first, [[1.0]] * 8) == 2


def test_completions_by_need():
    prompts = make(labels=["a", "b"], completions=(2, 16), update_every=None)
    for _ in range(20):
        batch = prompts.next(2)
        prompts.report(
            batch, [[0.0] * 8 if task == "a" else [0.0, 2.0] * 4 for task in batch.tasks]
        )
    wanted = {draw.task: draw.completions for draw in prompts.next(2)}
    assert wanted == {"a": 16, "b": 4}


def test_prompts_come_and_go():
    prompts = make(within="even")
    assert prompts.add(["a", "b"]).tolist() == [12, 13]
    drawn = prompts.next(14)
    assert sorted(drawn.ids.tolist()) == list(range(14))  # they join the pass under way
    prompts.retire([0, 1, 2, 3, 4, 5])
    assert len(prompts) == 8
    assert prompts.report(drawn, [[1.0]] * 14) == 14  # draws under way still count
    ids = {i for _ in range(20) for i in prompts.next(8).ids.tolist()}
    assert ids == {6, 7, 8, 9, 10, 11, 12, 13}
    prompts.retire([12])
    assert set(prompts.next(10).tasks) == {"b"}  # a task without prompts gets none
    assert prompts.explain([0]).probability.tolist() == [0.0]
    prompts.retire(range(14))
    with pytest.raises(MasteryError, match="every prompt is retired"):
        prompts.next(1)
    assert len(prompts.explain()) == 14
    with pytest.raises(MasteryError, match="not a task"):
        prompts.add(["c"])


def test_tasks_come_and_go():
    prompts = make()
    batch = prompts.next(4)
    prompts.teacher.change(Curriculum([TASKS["b"], Task("c", after=("b",))]))
    assert set(prompts.next(12).tasks) == {"b"}
    new = prompts.add(["c"] * 3)
    assert set(prompts.next(40).tasks) == {"b", "c"}
    prompts.report(batch, [[1.0]] * 4)
    prompts.update()
    assert prompts.waiting == 52
    assert set(prompts.explain(new).task) == {"c"}
    prompts.teacher.change(Curriculum([Task("a"), Task("c")]))
    assert set(prompts.next(40).tasks) == {"a", "c"}  # the prompts of a task come back with it


def test_an_explanation_has_both_levels():
    prompts = make()
    batch = prompts.next(12)
    prompts.report(batch, [[1.0, 0.0, 0.0, 0.0]] * 12)
    found = prompts.explain()
    assert found.tasks.task == ("a", "b")
    assert found.probability.sum() == pytest.approx(1)
    row = next(iter(found))
    assert row["own"] == pytest.approx(0.25)
    assert "estimate" in str(found)
    assert len(prompts.explain(batch)) == 12
    many = make(labels=["a", "b"] * 50)
    assert "the 40 most probable of 100 prompts" in str(many.explain())


def test_threads_share_one_object():
    prompts = make(labels=["a", "b"] * 200, update_every=16)

    def work():
        for _ in range(50):
            batch = prompts.next(4)
            prompts.report(batch, [[1.0, 0.0]] * 4)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (prompts.waiting, prompts.ignored) == (0, 0)
    assert prompts.teacher.time_step == 50
    assert prompts.next(1).tickets.tolist() == [800]


def test_a_copy_goes_on_alike():
    prompts = make()
    prompts.report(prompts.next(6), [[1.0]] * 6)
    twin = copy.deepcopy(prompts)
    assert np.array_equal(prompts.next(6).ids, twin.next(6).ids)
