"""Any sequence of draws, reports, prompts that come and go, tasks that do, and resumes."""

import warnings

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mastery import Curriculum, Prompts, Task, Teacher

NAMES = "abcde"


class Machine(RuleBasedStateMachine):
    """Beside it a plain account of what was drawn, counted and retired."""

    @initialize(
        program=st.sampled_from(["auto", "mr", "naive", "sec", "mopps", "uniform:gate=greso"]),
        within=st.sampled_from(["learnability", "even"]),
        every=st.sampled_from([None, 1, 3]),
        seed=st.integers(0, 9),
    )
    def start(self, program, within, every, seed):
        warnings.simplefilter("ignore")
        teacher = Teacher(Curriculum([Task(name) for name in "abc"]), program, seed=seed)
        labels = ["abc"[i % 3] for i in range(9)]
        self.prompts = Prompts(
            range(9), teacher, labels, within=within, update_every=every, seed=seed
        )
        self.task = dict(enumerate(labels))
        self.active = set(self.task)
        self.open, self.done = {}, {}  # tickets: their prompts
        self.ignored = self.counted = 0
        self.steps, self.every, self.since = 0, every, 0

    def drawable(self):
        names = self.prompts.teacher.curriculum.names
        return {i for i in self.active if self.task[i] in names}

    @precondition(lambda self: self.drawable())
    @rule(n=st.integers(1, 6))
    def draw(self, n):
        batch = self.prompts.next(n)
        assert len(batch) == n
        for draw in batch:
            assert draw.id in self.drawable()
            assert draw.task == self.task[draw.id]
            assert draw.ticket not in self.open
            assert draw.ticket not in self.done
            self.open[draw.ticket] = draw.id

    @precondition(lambda self: self.open)
    @rule(data=st.data(), passes=st.integers(0, 4))
    def report(self, data, passes):
        tickets = data.draw(st.lists(st.sampled_from(sorted(self.open)), unique=True, min_size=1))
        rewards = [[1.0] * passes + [0.0] * (4 - passes)] * len(tickets)
        ids = [self.open[t] for t in tickets]
        known = self.prompts.teacher.curriculum.names
        assert self.prompts.report(ids, rewards, tickets=tickets) == len(tickets)
        for ticket in tickets:
            row = self.done[ticket] = self.open.pop(ticket)
            self.since += self.task[row] in known
        if self.every is not None and self.since >= self.every:
            self.ended()

    @precondition(lambda self: self.done)
    @rule(data=st.data())
    def report_again(self, data):
        ticket = data.draw(st.sampled_from(sorted(self.done)))
        assert self.prompts.report([self.done[ticket]], [[1.0]], tickets=[ticket]) == 0
        self.ignored += 1

    @rule()
    def update(self):
        self.prompts.update()
        self.ended()

    def ended(self):
        # returns of a task that has left since are not the teacher's any more
        now = self.prompts.teacher.time_step
        assert now - self.steps <= bool(self.since)
        self.steps, self.since = now, 0

    @rule(data=st.data())
    def add(self, data):
        names = self.prompts.teacher.curriculum.names
        labels = data.draw(st.lists(st.sampled_from(names), max_size=4))
        for i, label in zip(self.prompts.add(labels).tolist(), labels, strict=True):
            assert i == len(self.task)
            self.task[i] = label
            self.active.add(i)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def retire(self, data):
        gone = data.draw(st.lists(st.sampled_from(sorted(self.active)), unique=True, max_size=3))
        self.prompts.retire(gone)
        self.active -= set(gone)

    @rule(names=st.sets(st.sampled_from(NAMES), min_size=1), chain=st.booleans())
    def change_tasks(self, names, chain):
        ordered = sorted(names)
        before = [None, *ordered] if chain else [None] * len(ordered)
        tasks = [
            Task(name, after=(b,) if b else ()) for name, b in zip(ordered, before, strict=False)
        ]
        self.prompts.teacher.change(Curriculum(tasks))

    @rule()
    def resume(self):
        """What follows comes from a new object that was made from the state alone."""
        old = self.prompts
        new = Prompts(
            range(9),
            Teacher(Curriculum([Task(n) for n in "abc"]), old.teacher.recipe, seed=77),
            ["abc"[i % 3] for i in range(9)],
            within=old._choice.rule,
            update_every=self.every,
            seed=78,
        )
        new.load_state_dict(old.state_dict())
        if self.drawable():  # both go on alike
            twin = Prompts(
                range(9), Teacher(Curriculum([Task(n) for n in "abc"]), old.teacher.recipe),
                ["abc"[i % 3] for i in range(9)], within=old._choice.rule, update_every=self.every,
            )  # fmt: skip
            twin.load_state_dict(new.state_dict())
            assert np.array_equal(old.next(5).ids, twin.next(5).ids)
        self.prompts = new

    @invariant()
    def accounts_agree(self):
        if not hasattr(self, "prompts"):
            return
        prompts, pool = self.prompts, self.prompts._pool
        assert prompts.waiting == len(self.open)
        assert prompts.ignored == self.ignored
        assert len(prompts) == len(self.active)
        waits = np.bincount(list(self.open.values()), minlength=len(self.task))
        assert pool.flying.tolist() == waits.tolist()
        for k, members in enumerate(pool.members):
            own = sorted(i for i in self.active if self.task[i] == pool.names[k])
            assert members.tolist() == own
            assert sorted(pool.order[k].tolist()) == own
            assert 0 <= pool.at[k] <= len(own)
        found = prompts.explain()
        total = float(found.probability.sum())
        assert abs(total - bool(self.drawable())) < 1e-9
        assert np.all((found.estimate > 0) & (found.estimate < 1))
        assert np.all(found.rate == np.clip(found.rate, 0, 1))


Machine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestMachine = Machine.TestCase
