"""One function for each rule of another paper; see `mastery.programs.functions`."""

from __future__ import annotations

from typing import Unpack

from mastery.programs.recipe import Common, Recipe


def learnability(*, window: int = 50, **common: Unpack[Common]) -> Recipe:
    """d_c ∝ M_c (1 − M_c): the tasks that succeed half of the time (SFL: Rutherford et al. 2024;
    LILO: Foster et al. 2025).

    Args:
        window: K, how many of a task's last time-steps count.
        **common: See `Common`; `reprobe` is 0.05 unless given.
    """
    return Recipe.parse("learnability", window=window, **common)


def learnability_topk(
    *, top: float = 0.2, epsilon: float = 0.5, window: int = 50, **common: Unpack[Common]
) -> Recipe:
    """The k tasks with the largest M_c (1 − M_c), with equal probability (SFL: Rutherford et al.
    2024).

    Args:
        top: k, or which share of the tasks if it is less than 1.
        epsilon: ε, the share of training spread evenly over all tasks.
        window: K, how many of a task's last time-steps count.
        **common: See `Common`.
    """
    return Recipe.parse("learnability-topk", top=top, epsilon=epsilon, window=window, **common)


def plr(
    *,
    alpha: float = 1.0,
    beta: float = 0.1,
    staleness: float = 0.1,
    nu: float = 0.5,
    fill: float = 1.0,
    window: int = 10,
    **common: Unpack[Common],
) -> Recipe:
    """Prioritised level replay: tasks ranked by how far they are below their best (Jiang et al.
    2021).

    Args:
        alpha: α, the weight of the newest score of a task.
        beta: β, the temperature of the ranks; a lower one prefers the first ranks.
        staleness: ρ, the share of replays by the time since a task was seen.
        nu: ν, the largest share of replays while some tasks are unseen.
        fill: The share of tasks to see before the first replay.
        window: K, the number of returns in the reported mastery; it does not affect training.
        **common: See `Common`.
    """
    return Recipe.parse(
        "plr",
        alpha=alpha,
        beta=beta,
        staleness=staleness,
        nu=nu,
        fill=fill,
        window=window,
        **common,
    )


def bidirectional(
    *,
    alpha: float = 0.1,
    theta: float = 0.1,
    epsilon: float = 0.25,
    window: int = 10,
    **common: Unpack[Common],
) -> Recipe:
    """Bidirectional learning progress: success rates that change, up or down (Kanitscheider et al.
    2021).

    Args:
        alpha: α, the weight of the newest rate in the moving averages.
        theta: θ, how strongly low rates are magnified; 0.5 does not.
        epsilon: ε, the share of training spread evenly over all tasks.
        window: K, the number of returns in the reported mastery; it does not affect training.
        **common: See `Common`.
    """
    return Recipe.parse(
        "bidirectional", alpha=alpha, theta=theta, epsilon=epsilon, window=window, **common
    )


def sec(
    *, alpha: float = 0.5, temperature: float = 1.0, window: int = 10, **common: Unpack[Common]
) -> Recipe:
    """Self-evolving curriculum: d_c ∝ exp(Q_c / τ), Q_c an average of mean |advantage| (Chen et
    al. 2025).

    Args:
        alpha: α, the weight of the newest value in the moving average.
        temperature: τ; a higher one spreads training more evenly.
        window: K, the number of returns in the reported mastery; it does not affect training.
        **common: See `Common`.
    """
    return Recipe.parse("sec", alpha=alpha, temperature=temperature, window=window, **common)


def dump(*, temperature: float = 0.1, window: int = 40, **common: Unpack[Common]) -> Recipe:
    """Mean |advantage| with a bonus for rarely seen tasks (Wang et al. 2025).

    Args:
        temperature: τ; a higher one spreads training more evenly.
        window: K, the number of most recent time-steps of a task that are averaged.
        **common: See `Common`.
    """
    return Recipe.parse("dump", temperature=temperature, window=window, **common)


def adarft(
    *,
    eta: float = 50.0,
    sensitivity: float = 2.0,
    goal: float = 0.5,
    top: float = 0.2,
    epsilon: float = 0.0,
    window: int = 10,
    **common: Unpack[Common],
) -> Recipe:
    """The tasks nearest to a target difficulty that rises with success (Shi et al. 2025).

    Difficulties, from 0 to 100, are the tasks' `settings.difficulty`, or their levels in the order.

    Args:
        eta: η, the size of the target's steps.
        sensitivity: α, how sharply the target answers to the rate of success.
        goal: The rate of success that it aims at.
        top: How many tasks are drawn from, or which share of them if it is less than 1.
        epsilon: ε, the share of training spread evenly over all tasks.
        window: K, the number of returns in the reported mastery; it does not affect training.
        **common: See `Common`; `reprobe` is 0.05 unless given.
    """
    return Recipe.parse(
        "adarft",
        eta=eta,
        sensitivity=sensitivity,
        goal=goal,
        top=top,
        epsilon=epsilon,
        window=window,
        **common,
    )


def greso(*, window: int = 10, **common: Unpack[Common]) -> Recipe:
    """All tasks equally, but those that were all right or all wrong several times running are
    skipped more and more often (Zheng et al. 2025). `mr(gate="greso")` is the same for `mr`.

    Args:
        window: K, the number of returns in the reported mastery; it does not affect training.
        **common: See `Common`.
    """
    return Recipe.parse("greso", window=window, **common)


def mopps(
    *,
    decay: float = 0.5,
    top: float = 0.2,
    epsilon: float = 0.0,
    window: int = 10,
    **common: Unpack[Common],
) -> Recipe:
    """The tasks whose sampled rate of success is nearest to one half (Qu et al. 2025).

    Args:
        decay: λ, how much of its evidence a task keeps when it is seen; 1 forgets nothing.
        top: How many tasks are drawn from, or which share of them if it is less than 1.
        epsilon: ε, the share of training spread evenly over all tasks.
        window: K, the number of returns in the reported mastery; it does not affect training.
        **common: See `Common`; `reprobe` is 0.05 unless given.
    """
    return Recipe.parse("mopps", decay=decay, top=top, epsilon=epsilon, window=window, **common)


def odm(*, window: int = 10, **common: Unpack[Common]) -> Recipe:
    """Online data mixing: the bandit Exp3, with the loss as its reward (Albalak et al. 2023).

    The loss is what a return lacks to the task's maximum.

    Args:
        window: K, the number of returns in the reported mastery; it does not affect training.
        **common: See `Common`.
    """
    return Recipe.parse("odm", window=window, **common)


def ado(*, start: int = 100, window: int = 10, **common: Unpack[Common]) -> Recipe:
    """Adaptive data optimisation: train where a fitted scaling law falls fastest (Jiang et al.
    2024).

    The loss is what a return lacks to the task's maximum.

    Args:
        start: The first time-step that uses the fits; before, all tasks are equally likely.
        window: K, the number of returns in the reported mastery; it does not affect training.
        **common: See `Common`.
    """
    return Recipe.parse("ado", start=start, window=window, **common)
