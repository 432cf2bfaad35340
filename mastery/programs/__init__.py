"""Programs choose what to train on next from the returns so far.

    mastery.Teacher(curriculum, mastery.programs.mr(delta=0.8))

Modules, in the order data flows:

    progress       returns → learning progress β
    attention      progress and mastery → attention (equations 1, 2 and 3)
    graph          the order of the tasks as arrays
    distribution   attention → probabilities, and drawing from them
    program        the parts combined, as pure functions
    step           one time-step of teaching
    named          the table of programs by name
    recipe         a program's parts and settings as text and data: Recipe
    functions      one function per named program: mr(), gprop_linreg(), …
    own            your own program by text: package.module:Class, file.py:Class:a=2
    metered        your own program with mastery and progress measured beside it
    side_by_side   several programs in one `jax.vmap`
    check          check_program, for your own programs
    states         a program's state as a tree of arrays
"""

from mastery.programs.functions import (
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

__all__ = [
    "boltzmann_window",
    "competence",
    "exp3s",
    "gamax_linreg",
    "gamax_online",
    "gamax_window",
    "gprop_linreg",
    "mr",
    "naive",
    "sampling",
    "sequential",
    "target",
    "uniform",
]
