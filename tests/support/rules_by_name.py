"""The oracle of a program's text, such as "plr:fill=0.5", with gates and costs around it."""

from __future__ import annotations

from oracle import SlowProgram
from rules_oracle import (
    ADO,
    DUMP,
    GRESO,
    ODM,
    PLR,
    SEC,
    AdaRFT,
    Bidirectional,
    Learnability,
    LearnabilityTopK,
    MoPPS,
    Oracle,
    Uniform,
    normalised,
    reprobed,
)

from mastery import Recipe


class MasteringRate(Oracle):
    """The oracle of the paper's algorithm, given evidence."""

    def start(self):
        self.slow = SlowProgram(self.curriculum, Recipe.parse("mr"))

    def update(self):
        self.slow.observe({c: float(self.step.mean[c]) for c in self.seen})

    def distribution(self):
        return [float(x) for x in self.slow.distribution()]


class Around(Oracle):
    """Changes the distribution of another oracle."""

    inner: Oracle

    def start(self):
        self.inner = self.within(self.curriculum, self.noise, self.margin, self.exact)

    def observe(self, step):
        self.inner.observe(step)
        super().observe(step)

    def distribution(self):
        d = self.changed(list(self.inner.distribution()))
        self.clear = self.inner.clear
        return d


class Gate(Around):
    """Only open tasks, if there are any, then a little of all."""

    def start(self):
        super().start()
        self.open = [True] * self.n

    def changed(self, d):
        kept = [x * o for x, o in zip(d, self.open, strict=True)]
        if sum(kept) <= 1e-12:  # what is open has no probability: it is shared among what is open
            kept = [float(o) for o in self.open]
        return reprobed(normalised(kept) if sum(kept) > 0 else d)


class ZeroVariance(Gate):
    def update(self):
        for c in self.seen:
            if self.step.count[c] > 1:
                self.open[c] = self.sigma[c] > 1e-6


class Retire(Gate):
    pass_rate = 0.95

    def update(self):
        for c in self.seen:
            self.open[c] = self.p[c] < self.pass_rate


class ByCost(Around):
    def start(self):
        super().start()
        self.spent, self.made = [0.0] * self.n, [0.0] * self.n

    def update(self):
        for c in range(self.n):
            self.spent[c] = 0.99 * self.spent[c] + float(self.step.cost[c])
            self.made[c] = 0.99 * self.made[c] + float(self.step.count[c])

    def changed(self, d):
        overall = sum(self.spent) / sum(self.made) if sum(self.made) > 0 else 0.0
        if overall == 0:  # nothing cost anything
            return d
        cost = [(s + overall) / (m + 1) for s, m in zip(self.spent, self.made, strict=True)]
        return normalised([x / (k / overall) for x, k in zip(d, cost, strict=True)])


PLAIN = {
    "mr": MasteringRate,
    "uniform": Uniform,
    "learnability": Learnability,
    "learnability-topk": LearnabilityTopK,
    "plr": PLR,
    "bidirectional": Bidirectional,
    "sec": SEC,
    "dump": DUMP,
    "adarft": AdaRFT,
    "greso": GRESO,
    "mopps": MoPPS,
    "odm": ODM,
    "ado": ADO,
}
AROUND = {"zero-variance": ZeroVariance, "retire": Retire}


def oracle_of(text, curriculum, noise, **about):
    """The oracle of a program.

    Args:
        text: The program, as a recipe: its name, then settings.
        curriculum: The curriculum.
        noise: (3, N) The noise given to `init`.
        about: `margin` and `exact` of `Oracle`.
    """
    name, _, rest = text.partition(":")
    settings = dict(part.split("=") for part in rest.split(",") if part)
    gate, by_cost = settings.pop("gate", None), settings.pop("by_cost", None)
    numbers = {"first" if k == "start" else k: float(v) for k, v in settings.items()}

    def within(curriculum, noise, margin, exact):
        return PLAIN[name](curriculum, noise, margin, exact, **numbers)

    around = AROUND[gate] if gate else ByCost if by_cost else None
    if around is None:
        return within(curriculum, noise, **{"margin": 1e-9, "exact": False} | about)
    return type(around.__name__, (around,), {"within": staticmethod(within)})(
        curriculum, noise, **about
    )
