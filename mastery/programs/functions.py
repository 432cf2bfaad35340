"""One function for each named program, with its settings as typed keyword arguments.

Each returns a `Recipe`, which `Teacher` and `simulate` accept. The text form of the command line
and of files is equivalent: `mr(delta=0.8)` equals `Recipe.parse("mr:delta=0.8")`. Every function
also takes the keyword arguments of `Common`. The rules of other papers are in `rules.functions`.
"""

from __future__ import annotations

from typing import Unpack

from mastery.programs.recipe import Common, Recipe


def mr(
    *,
    delta: float = 0.6,
    power: float = 6.0,
    gamma_pred: float = 0.2,
    gamma_succ: float = 0.05,
    window: int = 10,
    unlearned: float = 1.0,
    successors: float = 1.0,
    progress: str = "linreg",
    distribution: str = "prop",
    **common: Unpack[Common],
) -> Recipe:
    """The mastering-rate program: train on what is learnable but not learned yet (eq. 1 to 3).

        a_c = [(M_{Anc c})^p] [δ (1 − M_c) + (1 − δ) |β̂_c|] [1 − M_{Succ c}]

    Then each task gives part of its attention to its predecessors and successors.

    Args:
        delta: δ, the weight of missing mastery, 1 − M_c, against learning progress.
        power: p, how strongly attention depends on learnability; 0 disables the first factor.
        gamma_pred: γ_pred, the share of its attention that a task gives to its predecessors.
        gamma_succ: γ_succ, the share that it gives to its successors.
        window: K, how many of a task's last time-steps count.
        unlearned: The weight of the second factor; 0 disables it.
        successors: The weight of the third factor; 0 disables it.
        progress: The estimator of β, such as "linreg" or "online".
        distribution: How attention becomes probabilities, such as "prop" or "gamax".

    Returns:
        A recipe. The defaults are those of Willems, Lahlou and Bengio, *Mastering Rate based
        Curriculum Learning*, 2020.

    Example:
        >>> mastery.Teacher(curriculum, mastery.programs.mr(delta=0.8))
    """
    return Recipe.parse(
        "mr",
        delta=delta,
        power=power,
        gamma_pred=gamma_pred,
        gamma_succ=gamma_succ,
        window=window,
        unlearned=unlearned,
        successors=successors,
        progress=progress,
        distribution=distribution,
        **common,
    )


def auto(
    *,
    hint: float = 4.0,
    block: int = 200,
    dark: float = 0.1,
    cheap: float = 2.0,
    pool: float = 4.0,
    memory: float = 200.0,
    fade: float = 100.0,
    patience: float = 30.0,
    sigma: float = 3.0,
    epsilon: float = 0.1,
    window: int = 10,
    **common: Unpack[Common],
) -> Recipe:
    """Train on what answers to training. Needs no order; takes one as a hint, right or wrong.

    While no task succeeds, it trains on one task at a time, in blocks. `docs/auto.md` explains
    how, and when to take it.

    Args:
        hint: How much a given order counts in the choice of a block; 0 ignores it.
        block: The most time-steps that a block lasts.
        dark: The signal below which there are blocks; 0 for none.
        cheap: How much a low cost (short episodes, few tokens) counts in the choice of a block.
        pool: The number of returns that the mean signal of all tasks counts for.
        memory: The number of returns that a task's success rate is the mean of, unless it changes.
        fade: The number of time-steps in which what was seen of a task is forgotten.
        patience: The number of time-steps without a rise that halve what a task can still gain.
        sigma: The number of standard errors that make a change.
        epsilon: ε, the share of training spread evenly over all tasks.
        window: K, the number of time-steps that show a change.

    Returns:
        A recipe.

    Example:
        >>> mastery.Teacher(curriculum, mastery.programs.auto())
    """
    return Recipe.parse(
        "auto",
        hint=hint,
        block=block,
        dark=dark,
        cheap=cheap,
        pool=pool,
        memory=memory,
        fade=fade,
        patience=patience,
        sigma=sigma,
        epsilon=epsilon,
        window=window,
        **common,
    )


def gprop_linreg(
    *, epsilon: float = 0.1, window: int = 10, exponent: float = 1.0, **common: Unpack[Common]
) -> Recipe:
    """The paper's improved Teacher-Student program (Willems et al. 2020, section 3).

    d_c = (1 − ε) |β_c| / Σ |β| + ε / N, where β_c is the slope of the last K returns.

    Args:
        epsilon: ε, the share of training spread evenly over all tasks.
        window: K, how many of a task's last time-steps count.
        exponent: The power that |β_c| is raised to.
    """
    return Recipe.parse("gprop-linreg", epsilon=epsilon, window=window, exponent=exponent, **common)


def gamax_linreg(
    *, epsilon: float = 0.1, window: int = 10, exponent: float = 1.0, **common: Unpack[Common]
) -> Recipe:
    """Choose the task with the largest |β_c|, where β_c is the slope of its last K returns
    (Willems et al. 2020, section 3).

    Args:
        epsilon: ε, the share of training spread evenly over all tasks.
        window: K, how many of a task's last time-steps count.
        exponent: The power that |β_c| is raised to.
    """
    return Recipe.parse("gamax-linreg", epsilon=epsilon, window=window, exponent=exponent, **common)


def gamax_window(
    *,
    alpha: float = 0.1,
    epsilon: float = 0.1,
    window: int = 10,
    exponent: float = 1.0,
    **common: Unpack[Common],
) -> Recipe:
    """Choose the task with the largest |β_c|, where β_c is a moving average of the slope of its
    last K returns (Matiisen et al. 2017, Window).

    Args:
        alpha: α, the weight of the newest slope in the moving average.
        epsilon: ε, the share of training spread evenly over all tasks.
        window: K, how many of a task's last time-steps count.
        exponent: The power that |β_c| is raised to.
    """
    return Recipe.parse(
        "gamax-window", alpha=alpha, epsilon=epsilon, window=window, exponent=exponent, **common
    )


def gamax_online(
    *,
    alpha: float = 0.1,
    epsilon: float = 0.1,
    window: int = 10,
    exponent: float = 1.0,
    **common: Unpack[Common],
) -> Recipe:
    """Choose the task with the largest |β_c|, where β_c is a moving average of the changes of its
    return, β ← α (r_t − r_{t−1}) + (1 − α) β (Matiisen et al. 2017, Online).

    Args:
        alpha: α, the weight of the newest change in the moving average.
        epsilon: ε, the share of training spread evenly over all tasks.
        window: K, how many of a task's last time-steps count.
        exponent: The power that |β_c| is raised to.
    """
    return Recipe.parse(
        "gamax-online", alpha=alpha, epsilon=epsilon, window=window, exponent=exponent, **common
    )


def naive(
    *,
    alpha: float = 0.1,
    epsilon: float = 0.1,
    window: int = 10,
    exponent: float = 1.0,
    **common: Unpack[Common],
) -> Recipe:
    """Train on one task for K time-steps, then update its β_c with the slope of its returns in
    them (Matiisen et al. 2017, Naive).

    Args:
        alpha: α, the weight of the newest slope in the moving average.
        epsilon: ε, the share of training spread evenly over all tasks.
        window: K, the number of time-steps per task, and of most recent returns used.
        exponent: The power that |β_c| is raised to.
    """
    return Recipe.parse(
        "naive", alpha=alpha, epsilon=epsilon, window=window, exponent=exponent, **common
    )


def sampling(*, window: int = 10, exponent: float = 1.0, **common: Unpack[Common]) -> Recipe:
    """Draw one of the last K changes of each task's return, and choose the task with the largest
    absolute change (Matiisen et al. 2017, Sampling).

    Args:
        window: K, the number of most recent changes used per task.
        exponent: The power that the absolute change is raised to.
    """
    return Recipe.parse("sampling", window=window, exponent=exponent, **common)


def boltzmann_window(
    *,
    alpha: float = 0.1,
    temperature: float = 4e-4,
    window: int = 10,
    exponent: float = 1.0,
    **common: Unpack[Common],
) -> Recipe:
    """d_c = exp(|β_c| / τ) / Σ exp(|β| / τ), where β_c is a moving average of slopes (Matiisen et
    al. 2017).

    Args:
        alpha: α, the weight of the newest slope in the moving average.
        temperature: τ; a higher one spreads training more evenly. The default is that of the
            paper's code.
        window: K, how many of a task's last time-steps count.
        exponent: The power that |β_c| is raised to.
    """
    return Recipe.parse(
        "boltzmann-window",
        alpha=alpha,
        temperature=temperature,
        window=window,
        exponent=exponent,
        **common,
    )


def exp3s(
    *, eta: float = 0.001, epsilon: float = 0.05, window: int = 10, **common: Unpack[Common]
) -> Recipe:
    """The bandit Exp3.S on changes of the return (Graves et al. 2017).

    Args:
        eta: η, the step size.
        epsilon: ε, the share of training spread evenly over all tasks.
        window: K, the number of most recent changes used per task.
    """
    return Recipe.parse("exp3s", eta=eta, epsilon=epsilon, window=window, **common)


def competence(*, window: int = 10, exponent: float = 1.0, **common: Unpack[Common]) -> Recipe:
    """Choose tasks in proportion to |β_c|, where β_c is the mean of the newer half of the last K
    returns minus the mean of the older half (Fournier et al. 2018).

    Args:
        window: K, how many of a task's last time-steps count.
        exponent: The power that |β_c| is raised to.
    """
    return Recipe.parse("competence", window=window, exponent=exponent, **common)


def uniform(*, window: int = 10, **common: Unpack[Common]) -> Recipe:
    """Baseline: all tasks are equally likely.

    Args:
        window: K, the number of returns in the reported mastery; it does not affect training.
    """
    return Recipe.parse("uniform", window=window, **common)


def target(*, window: int = 10, **common: Unpack[Common]) -> Recipe:
    """Baseline: only tasks without successors.

    Args:
        window: K, the number of returns in the reported mastery; it does not affect training.
    """
    return Recipe.parse("target", window=window, **common)


def sequential(*, threshold: float = 0.9, window: int = 10, **common: Unpack[Common]) -> Recipe:
    """Baseline: one level of the order at a time.

    Args:
        threshold: The mastery that every task of a level must reach before the next level.
        window: K, how many of a task's last time-steps count.
    """
    return Recipe.parse("sequential", threshold=threshold, window=window, **common)
