"""One function for each named program, with its settings as typed keyword arguments.

Each gives a `Recipe`, which a `Teacher`, `simulate` and `Recipe.build` take. The text form of the
command line and of files is equal: `mr(delta=0.8)` is `Recipe.parse("mr:delta=0.8")`.

Arguments that several programs have: `window` is K, the number of a task's last returns that count;
`alpha` is the weight of the newest estimate in a moving average; `exponent` is the power that
learning progress is raised to; `epsilon` is the share of training that is spread evenly.
"""

from __future__ import annotations

from mastery.programs.catalogue import Recipe


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
) -> Recipe:
    """The mastering-rate program: what is learnable but not learned yet (equations 1 to 3).

        a_c = [(M_{Anc c})^p] [δ (1 − M_c) + (1 − δ) |β̂_c|] [1 − M_{Succ c}]

    and then a task gives part of its attention to its predecessors and successors.

    Args:
        delta: δ, the weight of what is not mastered against what is progressing.
        power: p, how learnable a task must be to get attention; 0 leaves the first factor out.
        gamma_pred: γ_pred, the part of its attention that a task gives to its predecessors.
        gamma_succ: γ_succ, the part that it gives to its successors.
        window: K, the number of a task's last returns that count.
        unlearned: 0 leaves the second factor out.
        successors: 0 leaves the third factor out.
        progress: The estimator of β, such as "linreg" or "online".
        distribution: How attention becomes probabilities, such as "prop" or "gamax".

    Returns:
        A recipe. Defaults are those of Willems, Lahlou and Bengio, *Mastering Rate based
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
    )


def gprop_linreg(*, epsilon: float = 0.1, window: int = 10, exponent: float = 1.0) -> Recipe:
    """Teacher-Student as the paper improves it: d_c = (1 − ε) |β_c| / Σ |β| + ε / N, where β_c is
    the slope of the last K returns (Willems et al. 2020, section 3)."""
    return Recipe.parse("gprop-linreg", epsilon=epsilon, window=window, exponent=exponent)


def gamax_linreg(*, epsilon: float = 0.1, window: int = 10, exponent: float = 1.0) -> Recipe:
    """The task with the largest |β_c|, the slope of its last K returns; ε of training is spread
    evenly (Willems et al. 2020, section 3)."""
    return Recipe.parse("gamax-linreg", epsilon=epsilon, window=window, exponent=exponent)


def gamax_window(
    *, alpha: float = 0.1, epsilon: float = 0.1, window: int = 10, exponent: float = 1.0
) -> Recipe:
    """The task with the largest moving average of that slope (Matiisen et al. 2017, Window)."""
    return Recipe.parse(
        "gamax-window", alpha=alpha, epsilon=epsilon, window=window, exponent=exponent
    )


def gamax_online(
    *, alpha: float = 0.1, epsilon: float = 0.1, window: int = 10, exponent: float = 1.0
) -> Recipe:
    """The task with the largest moving average of changes, β ← α (r_t − r_{t−1}) + (1 − α) β
    (Matiisen et al. 2017, Online)."""
    return Recipe.parse(
        "gamax-online", alpha=alpha, epsilon=epsilon, window=window, exponent=exponent
    )


def naive(
    *, alpha: float = 0.1, epsilon: float = 0.1, window: int = 10, exponent: float = 1.0
) -> Recipe:
    """One task for K time-steps, then the slope of its returns in them (Matiisen et al. 2017,
    Naive)."""
    return Recipe.parse("naive", alpha=alpha, epsilon=epsilon, window=window, exponent=exponent)


def sampling(*, window: int = 10, exponent: float = 1.0) -> Recipe:
    """The task with the largest of one of its last K changes, drawn at random (Matiisen et al.
    2017, Sampling)."""
    return Recipe.parse("sampling", window=window, exponent=exponent)


def boltzmann_window(
    *, alpha: float = 0.1, temperature: float = 4e-4, window: int = 10, exponent: float = 1.0
) -> Recipe:
    """d_c = exp(|β_c| / τ) / Σ exp(|β| / τ), where β_c is a moving average of slopes (Matiisen et
    al. 2017; τ, `temperature`, as in the paper's code)."""
    return Recipe.parse(
        "boltzmann-window", alpha=alpha, temperature=temperature, window=window, exponent=exponent
    )


def exp3s(*, eta: float = 0.001, epsilon: float = 0.05, window: int = 10) -> Recipe:
    """The bandit Exp3.S on changes of the return, with step size η (Graves et al. 2017)."""
    return Recipe.parse("exp3s", eta=eta, epsilon=epsilon, window=window)


def competence(*, window: int = 10, exponent: float = 1.0) -> Recipe:
    """In proportion to the newer half of the last K returns less the older half (Fournier et al.
    2018)."""
    return Recipe.parse("competence", window=window, exponent=exponent)


def uniform(*, window: int = 10) -> Recipe:
    """A baseline: all tasks alike. `window` only counts for the mastery that is shown."""
    return Recipe.parse("uniform", window=window)


def target(*, window: int = 10) -> Recipe:
    """A baseline: only tasks without successors."""
    return Recipe.parse("target", window=window)


def sequential(*, threshold: float = 0.9, window: int = 10) -> Recipe:
    """A baseline made by hand: one level of the order at a time; the next one once every task of it
    has a mastery of `threshold`."""
    return Recipe.parse("sequential", threshold=threshold, window=window)
