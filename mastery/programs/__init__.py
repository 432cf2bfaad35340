"""Programs choose what to train on next from the returns so far.

    mastery.Teacher(curriculum, mastery.programs.mr(delta=0.8))

Modules, in the order data flows:

    returns        what `Teacher.update` is given → evidence
    evidence       what a time-step tells about each task
    progress       returns → learning progress β
    attention      progress and mastery → attention (equations 1, 2 and 3)
    automatic      attention without a known order
    graph          the order of the tasks as arrays
    rules          the rules of other papers, one module each
    distribution   attention → probabilities, and drawing from them
    sharing        gates, sharing by cost, and a share for what was left out
    program        the parts combined, as pure functions
    step           one time-step of teaching
    named          the table of programs by name
    recipe         a program's parts and settings as text and data: Recipe
    functions      one function per named program: mr(), gprop_linreg(), …
    own            your own program by text: package.module:Class, file.py:Class:a=2
    metered        your own program with mastery and progress measured beside it
    side_by_side   several programs in one `jax.vmap`
    check          check_program, for your own programs
    explanation    why each task has its probability
    states         a program's state as a tree of arrays
"""

from mastery.programs.functions import (
    auto,
    boltzmann_window,
    competence,
    exp3s,
    gamax_linreg,
    gamax_online,
    gamax_window,
    gprop_linreg,
    mr,
    naive,
    sampling,
    sequential,
    target,
    uniform,
)
from mastery.programs.rules.functions import (
    adarft,
    ado,
    bidirectional,
    dump,
    greso,
    learnability,
    learnability_topk,
    mopps,
    odm,
    plr,
    sec,
)

__all__ = [
    "adarft",
    "ado",
    "auto",
    "bidirectional",
    "boltzmann_window",
    "competence",
    "dump",
    "exp3s",
    "gamax_linreg",
    "gamax_online",
    "gamax_window",
    "gprop_linreg",
    "greso",
    "learnability",
    "learnability_topk",
    "mopps",
    "mr",
    "naive",
    "odm",
    "plr",
    "sampling",
    "sec",
    "sequential",
    "target",
    "uniform",
]
