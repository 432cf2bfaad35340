"""Program = distribution ∘ attention ∘ progress: choose what to train on from the returns so far.

A program is three pure functions over arrays:

    init(noise)                       -> state
    observe(state, evidence, noise)   -> state after one time-step
    distribution(state)               -> probabilities (N,)

`noise` (3, N) holds uniforms in [0, 1), fresh at each time-step; its type also selects NumPy or JAX
arrays. `Program` and `State` are NamedTuples of arrays and numbers, so they work directly with
`jax.jit`, `jax.vmap` (over hyper-parameters, graphs, seeds) and `jax.lax.scan`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from mastery.errors import ProgramError
from mastery.programs.attention import (
    Attention,
    Exp3S,
    MasteringRate,
    TimeStep,
    View,
    mastering_rate,
)
from mastery.programs.automatic import Auto
from mastery.programs.distribution import Amax, Converter, TopK, cumulative, draw
from mastery.programs.evidence import Evidence
from mastery.programs.graph import Graph
from mastery.programs.progress import Estimator, History, Naive, Sampling
from mastery.programs.rules.mopps import MoPPS
from mastery.programs.rules.odm import ODM
from mastery.programs.sharing import Sharing
from mastery.programs.states import tree_map

Array = Any  # a NumPy or a JAX array
FEW = 64  # tasks that are rather copied than overwritten
BLOCK = 8192  # tasks updated together, so that their data stays in the CPU cache


class ProgramLike(Protocol):
    """The interface of your own programs; `check_program` tests an implementation.

    All functions are pure: they do not change their arguments, the state holds all memory, and
    `noise` (3, N), uniforms in [0, 1), is the only source of randomness. A state is made of named
    tuples, tuples, lists and dicts of arrays of numbers.
    """

    def init(self, noise: Array) -> Any:
        """Return the state before the first time-step."""
        ...

    def observe(self, state: Any, evidence: Evidence, noise: Array) -> Any:
        """Return the state after one time-step.

        Args:
            state: The state before it.
            evidence: The mean, count, variance and cost of each task's returns, each (N,). The
                returns are as you gave them; the curriculum's bounds are not applied.
            noise: (3, N) Fresh uniforms in [0, 1).
        """
        ...

    def distribution(self, state: Any) -> Array:
        """Return the probability of each task (N,): non-negative, with sum 1."""
        ...


class Snapshot(NamedTuple):
    """Values of some tasks: of one slot of their rings, and of all other arrays."""

    tasks: Any
    slot: Any
    values: tuple[Any, ...]


class Tasks(NamedTuple):
    """The memory of each task on its own; tasks are the last axis of every array."""

    history: History
    mean: Array  # (N,): r̄_c, the running mean return, in [m̄_c, M̄_c]
    minimum: Array  # (N,): m̄_c, the running minimum mean return
    maximum: Array  # (N,): M̄_c, the running maximum mean return
    progress: Array  # (N,) or (K, N): the estimator's memory
    support: Array  # (N,): about how many returns r̄_c is the mean of

    def take(self, tasks: Any) -> Tasks:
        """Select some tasks, or a single one by its number; the rings are copied."""
        returns, times, count = self.history
        history = History(returns[:, tasks].copy(), times[:, tasks].copy(), count[tasks])
        return Tasks(history, *[x[tasks] if x.ndim == 1 else x[..., tasks] for x in self[1:]])

    def put(self, change: Snapshot) -> None:
        """Write the newest return of some tasks, and what follows from it, in place."""
        tasks, slot, (returns, times, *rest) = change
        at = (slot, _rows(tasks, len(self.mean)))
        self.history.returns[at], self.history.times[at] = returns, times
        for x, value in zip((self.history.count, *self[1:]), rest, strict=True):
            if x.ndim == 1:
                x[tasks] = value
            else:
                x[..., tasks] = value


class ProgramState(NamedTuple):
    """Everything a program knows at a time-step."""

    t: Array  # () int32: the number of time-steps observed
    tasks: Tasks
    attention: Any  # the attention's memory, if it has one
    held: Array  # () int32: the task to train on for K steps (Naive only)
    noise: Array  # (3, N) uniforms of this time-step: estimator, ties, task to hold; or (0, N)
    sharing: Any = ()  # the memory of `Sharing`, if the program has one


class Factors(NamedTuple):
    """Why each task has its probability; each (N,)."""

    returns: Array  # about how many returns M_c rests on
    mastery: Array  # M_c
    learnability: Array  # M_{Anc c}
    progress: Array  # β_c
    attention: Array  # a_c
    redistributed: Array  # a''_c
    probability: Array  # d_c


def _outside(mean: Any, low: Any, high: Any) -> bool:
    """Whether any mean return is outside its bounds; NumPy only."""
    if not getattr(mean, "ndim", 0):
        return not low <= mean <= high
    # a task that was not seen may have NaN here
    return bool(np.fmin.reduce((mean - low) * (high - mean), initial=0.0) < 0)


def _rows(tasks: Any, n: int) -> Any:
    """Positions, also for a slice."""
    return np.arange(n)[tasks] if isinstance(tasks, slice) else tasks


def _in_order(tasks: Any, evidence: Evidence, n: int) -> Any:
    """The mean returns and counts of all n tasks, in order."""
    ordered = np.empty((2, n))
    ordered[0, tasks], ordered[1, tasks] = evidence.mean, evidence.count
    return ordered


def _blocks(tasks: Any, evidence: Evidence, n: int) -> list[tuple[Any, Any, Any]]:
    """Split positions, mean returns and counts into parts that fit in the CPU cache."""
    mean, count = evidence.mean, evidence.count
    if not getattr(tasks, "ndim", 0) or len(tasks) < min(n, BLOCK):
        return [(tasks, mean, count)]
    parts = [slice(i, i + BLOCK) for i in range(0, len(tasks), BLOCK)]
    if len(tasks) < n:
        count = np.broadcast_to(count, tasks.shape)
        return [(tasks[part], mean[part], count[part]) for part in parts]
    mean, count = _in_order(tasks, evidence, n)  # so slices can replace positions
    return [(part, mean[part], count[part]) for part in parts]


class Program(NamedTuple):
    """A program for one curriculum; `Recipe.build` makes one from names and settings."""

    progress: Estimator
    attention: Attention
    converter: Converter
    window: Array  # () int: K, at most the `slots` of `init`
    minimum: Array  # (N,): m̂_c
    maximum: Array  # (N,): M̂_c
    graph: Graph
    sharing: Sharing | tuple[()] = ()

    @property
    def uses_noise(self) -> bool:
        """Whether the program uses noise."""
        return (
            isinstance(self.progress, (Sampling, Naive))
            or isinstance(self.attention, (MoPPS, Auto))
            or isinstance(self.converter, (Amax, TopK))
        )

    @property
    def learns(self) -> bool:
        """Whether the program needs the evidence of all tasks together, beyond their returns."""
        return hasattr(self.attention, "advance") or bool(self.sharing)

    def init(self, noise: Array, slots: int | None = None) -> ProgramState:
        """Return the state before the first time-step.

        Args:
            noise: (3, N) Uniforms in [0, 1).
            slots: The number of returns to store per task, by default K. Needed when K is not a
                plain number, as in a `vmap` over programs with different windows.

        Raises:
            ProgramError: If `slots` is less than K.
        """
        xp = noise.__array_namespace__()
        known = isinstance(self.window, int | np.ndarray | np.generic)  # not traced by JAX
        if slots is not None and known and slots < (largest := int(np.max(self.window))):
            raise ProgramError(f"slots is {slots}; a window of {largest} needs at least {largest}")
        zeros = xp.zeros_like(noise[0])
        empty = xp.zeros((slots or int(self.window), zeros.shape[0]), dtype=zeros.dtype)
        count = zeros.astype(xp.int32)
        history = History(empty, xp.zeros_like(empty, dtype=xp.int32), count)
        low, high = zeros + self.minimum, zeros + self.maximum
        # they may be equal in float32, and M_c divides by their difference
        high = xp.where(high > low, high, low + (1 + abs(low)) * 1e-6)
        tasks = Tasks(history, low + 0.0, low, high, self.progress.init(history), zeros + 0.0)
        state = ProgramState(
            t=xp.zeros((), dtype=xp.int32),
            tasks=tasks,
            attention=self.attention.init(zeros, empty.shape[0]),
            held=xp.zeros((), dtype=xp.int32),
            noise=noise if self.uses_noise else noise[:0],
            sharing=self.sharing.init(zeros) if self.sharing else (),
        )
        return self._hold(state, True)

    def observe(self, state: ProgramState, evidence: Evidence, noise: Array) -> ProgramState:
        """Return the state after one time-step.

        Args:
            state: The state before it.
            evidence: What the time-step tells about each task.
            noise: (3, N) Fresh uniforms in [0, 1).
        """
        xp = state.tasks.mean.__array_namespace__()
        tasks, t, seen = state.tasks, state.t + 1, evidence.seen
        written = tasks._replace(history=tasks.history.write(evidence.mean, t, self.window))
        recorded = self.record(written, evidence.count, t)
        tasks = tree_map(lambda new, old: xp.where(seen, new, old), recorded, tasks)
        return self.advance(state, tasks, evidence, noise)

    def observe_in_place(
        self,
        state: ProgramState,
        tasks: Any,
        evidence: Evidence,
        noise: Array,
        journal: list[Snapshot],
    ) -> ProgramState:
        """Like `observe`, for some tasks only; may overwrite the arrays of `state.tasks`.

        NumPy only, and only for a state the caller owns. Tasks are independent here, so the other
        tasks stay untouched. All results are computed before any is written.

        Args:
            state: The state before the time-step; overwritten.
            tasks: The positions of the seen tasks, each once; or a single position.
            evidence: What the time-step tells about them, in the same order.
            noise: (3, N) Fresh uniforms in [0, 1).
            journal: What is overwritten is added here: if this is interrupted, or what follows,
                `undo` with it gives the state before.
        """
        t, old = state.t + 1, state.tasks
        n = len(old.mean)
        every = evidence.spread_out(tasks, old.mean) if self.learns else evidence
        if n <= FEW and np.ndim(tasks) and len(tasks) == n:  # nothing of the old state remains
            taken, (mean, count) = old.take(slice(None)), _in_order(tasks, evidence, n)
            history = taken.history.write_over(mean, t, taken.history.count % self.window)
            return self.advance(
                state, self.record(Tasks(history, *taken[1:]), count, t), every, noise
            )
        changes = []
        for block, mean, count in _blocks(tasks, evidence, n):
            taken = old.take(block)
            before: tuple[Any, ...] = (taken.history.count, *taken[1:])
            if not isinstance(block, np.ndarray):  # what is an array here is not a copy
                before = tuple([np.array(x) if isinstance(x, np.ndarray) else x for x in before])
            slot = before[0] % self.window
            replaced = taken.history.at(slot)
            history = taken.history.write_over(mean, t, slot)
            new = self.record(Tasks(history, *taken[1:]), count, t)
            after = (mean, t, new.history.count, *new[1:])
            changes.append(
                (Snapshot(block, slot, (*replaced, *before)), Snapshot(block, slot, after))
            )
        for undo, change in changes:
            journal.append(undo)
            old.put(change)
        return self.advance(state, old, every, noise)

    def undo(self, state: ProgramState, journal: list[Snapshot]) -> None:
        """Undo what `observe_in_place` wrote to the arrays of `state.tasks`."""
        for before in reversed(journal):
            state.tasks.put(before)

    def record(self, tasks: Tasks, count: Array, t: Array) -> Tasks:
        """Update each task on its own after a new return is in its history.

            r̄_c = (r_{t_1} + … + r_{t_K}) / K,  m̄_c = min(r̄_c, m̄_c),  M̄_c = max(r̄_c, M̄_c)

        (section 4.1). With fewer than K returns, r̄ is the mean of the available ones, clipped to
        [m̄, M̄], so m̄ and M̄ do not change. They move only as far as the median of the K returns
        goes with the mean, and r̄ is clipped to them, so that a single return far outside cannot
        move them for good. With all returns inside the bounds, nothing differs from the paper.
        """
        history, _, low, high, memory, support = tasks
        xp = low.__array_namespace__()
        n = history.size(self.window)
        mean = history.returns.sum(axis=0) / n
        memory = self.progress.observe(memory, history, n, t, self.window)
        support = support * (1 - (history.count > self.window) / self.window) + count
        if not isinstance(mean, np.ndarray | np.generic) or _outside(mean, low, high):
            middle, full = history.median(n), n == self.window
            low = xp.where(full, xp.minimum(low, xp.maximum(mean, middle)), low)
            high = xp.where(full, xp.maximum(high, xp.minimum(mean, middle)), high)
            mean = xp.minimum(xp.maximum(mean, low), high)
        return Tasks(history, mean, low, high, memory, support)

    def advance(
        self, state: ProgramState, tasks: Tasks, evidence: Evidence, noise: Array
    ) -> ProgramState:
        """Do the part of `observe` that concerns all tasks together."""
        t = state.t + 1
        noise = noise if self.uses_noise else state.noise
        new = ProgramState(t, tasks, state.attention, state.held, noise, state.sharing)
        if self.learns:
            learned = self._learned(state, tasks, evidence)
            if hasattr(self.attention, "advance"):
                memory = self.attention.advance(state.attention, self.view(new), learned)
                new = new._replace(attention=memory)
            if self.sharing:
                new = new._replace(sharing=self.sharing.advance(state.sharing, learned))
        return self._hold(new, t % self.window == 0)

    def _learned(self, state: ProgramState, tasks: Tasks, evidence: Evidence) -> TimeStep:
        xp = tasks.mean.__array_namespace__()
        span = self.maximum - self.minimum
        rate = xp.minimum(xp.maximum((evidence.mean - self.minimum) / span, 0.0), 1.0)
        return TimeStep(
            state.t + 1,
            evidence,
            xp.where(evidence.seen, rate, 0.0).astype(tasks.mean.dtype),
            (xp.sqrt(evidence.variance) / span).astype(tasks.mean.dtype),
            self.distribution(state) if isinstance(self.attention, (Exp3S, ODM)) else (),
            tasks.history.count,
            self.window,
            tasks.progress,
        )

    def view(self, state: ProgramState) -> View:
        """Mastery and learning progress, the inputs of attention."""
        history, mean, low, high, memory, support = state.tasks
        uniforms = state.noise[0] if self.uses_noise else mean
        beta = self.progress.estimate(memory, history, uniforms, self.window)
        mastery = mastering_rate(mean, low, high)
        return View(mastery, beta, self.graph, uniforms, mean, support, low)

    def mastery(self, state: ProgramState) -> Array:
        """M_c of each task (N,)."""
        tasks = state.tasks
        return mastering_rate(tasks.mean, tasks.minimum, tasks.maximum)

    def distribution(self, state: ProgramState) -> Array:
        """d(t) = Δ(a(t)): the probability of each task at the next time-step."""
        if isinstance(self.progress, Naive):
            xp = state.tasks.mean.__array_namespace__()
            one = xp.arange(state.tasks.mean.shape[0]) == state.held
            d = one.astype(state.tasks.mean.dtype)
        else:
            d = self._converted(state)
        return self.sharing.share(state.sharing, d) if self.sharing else d

    def factors(self, state: ProgramState) -> Factors:
        """The distribution and all values it is computed from."""
        view = self.view(state)
        a = self.attention.attend(state.attention, view)
        return Factors(
            state.tasks.support,
            view.mastery,
            self.graph.anc_succ(view.mastery)[0],
            view.progress,
            a,
            self.redistribute(a),
            self.distribution(state),
        )

    def redistribute(self, a: Array) -> Array:
        """a'' (eq. 2 and 3); the attention itself if it is not that of the mastering-rate."""
        if isinstance(self.attention, MasteringRate):
            return self.attention.redistribute(a, self.graph)
        return a

    def _converted(self, state: ProgramState) -> Array:
        a = self.redistribute(self.attention.attend(state.attention, self.view(state)))
        return self.converter.convert(a, state.noise[1] if self.uses_noise else a)

    def _hold(self, state: ProgramState, over: Array) -> ProgramState:
        """Naive only: after K time-steps, update β of the held task and draw the next task."""
        if not isinstance(self.progress, Naive):
            return state
        xp = state.tasks.mean.__array_namespace__()
        tasks, K = state.tasks, self.window
        beta = self.progress.close(tasks.progress, tasks.history, state.held, state.t, K)
        beta = xp.where(over, beta, tasks.progress)
        state = state._replace(tasks=tasks._replace(progress=beta))
        drawn = draw(cumulative(self._converted(state)), state.noise[2, :1])[0]
        return state._replace(held=xp.where(over, drawn.astype(state.held.dtype), state.held))
