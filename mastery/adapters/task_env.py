"""TaskEnv: a Gymnasium environment that switches to a task's environment at each reset."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import gymnasium
import numpy as np
from gymnasium import spaces

from mastery.curriculum import Curriculum
from mastery.curriculum.environments import Env, make_by_settings, said
from mastery.errors import MasteryError, check_whole, did_you_mean

KEPT = 32
MakeEnv = Callable[[], Env] | Callable[[str], Env] | str | None


class Maker:
    """Makes the environments of a curriculum's tasks.

    Args:
        make_env: A function of a task's name that returns the task's environment; or a function
            without arguments, or an environment id, for a single environment that plays all tasks
            and reads the task from `reset(options={"task": name})`; or None: each task's
            `settings["env"]` is an environment id.
        curriculum: The tasks.

    Raises:
        MasteryError: If `make_env` is none of these.
    """

    def __init__(self, make_env: MakeEnv, curriculum: Curriculum) -> None:
        self.names = curriculum.names
        self.positions = curriculum.positions
        self._settings = {} if make_env is not None else dict(curriculum.settings)
        if isinstance(make_env, str):
            make_env = partial(gymnasium.make, make_env)
        if not (make_env is None or callable(make_env)):
            hint = (
                "; make the environment in the function"
                if isinstance(make_env, gymnasium.Env)
                else ""
            )
            raise MasteryError(
                f"make_env is {make_env!r:.80}; it must be a function that returns an environment, "
                f"an environment id, or None{hint}"
            )
        self._function: Callable[..., Env] | None = make_env
        self.one_for_all = make_env is not None and not _takes_task(make_env)

    def __call__(self, task: int) -> Env:
        name = self.names[task]
        if self._function is None:
            return make_by_settings(name, self._settings.get(name, {}))
        try:
            env = self._function() if self.one_for_all else self._function(name)
        except MasteryError:
            raise
        except Exception as error:  # a user's function may raise anything
            raise MasteryError(f"task {name!r}: make_env failed: {said(error)}") from error
        if not isinstance(env, gymnasium.Env):
            raise MasteryError(
                f"task {name!r}: make_env returned {env!r:.80}; it must return a gymnasium.Env"
            )
        return env

    def position(self, name: Any) -> int:
        """The position of a task; MasteryError if there is no such task."""
        if isinstance(name, str) and name in self.positions:
            return int(self.positions[name])
        raise MasteryError(f"there is no task {name!r}{did_you_mean(str(name), self.positions)}")


class TaskEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Plays one task's environment after another; at each reset `choose` picks the task.

    Environments are made at first use and reused. The `keep` most recently used ones stay open.
    """

    def __init__(self, maker: Maker, keep: int = KEPT) -> None:
        self._maker, self._keep = maker, check_whole("keep", keep)
        self._kept: OrderedDict[int, Env] = OrderedDict()
        self._accepted: set[int] = set()  # ids of environments known to read options["task"]
        self._seeds: np.random.Generator | None = None
        self._seeded: set[int] = set()
        self._spaces: dict[str, Any] = {}  # of the first environment; all must be equal
        self.position = 0
        super().__init__(self._environment(0))
        self.observation_space = self._spaces["observation_space"]
        self.action_space = self._spaces["action_space"]
        self.metadata = self.env.metadata

    def check(self) -> None:
        """Make the environments of the first `keep` tasks, to fail early if their spaces differ."""
        if not self._maker.one_for_all:
            for task in range(min(self._keep, len(self._maker.names))):
                self._environment(task)

    def choose(self) -> int:
        """The position of the task to play next."""
        raise NotImplementedError

    @property
    def task(self) -> str:
        """The name of the current task."""
        return self._maker.names[self.position]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode of the next task, or of `options["task"]` if given."""
        given = {} if options is None else dict(options)
        asked = given.pop("task", None)
        task = self.choose() if asked is None else self._maker.position(asked)
        env, name = self._environment(task), self._maker.names[task]
        self.env, self.position = env, task
        noted = _Noted(given, task=name) if self._maker.one_for_all else None
        if noted is None and options is not None:
            options = given
        try:
            observation, info = env.reset(
                seed=self._seed(env, seed), options=options if noted is None else noted
            )
        except MasteryError:
            raise
        except Exception as error:  # a user's environment may raise anything
            raise MasteryError(
                f"task {name!r}: reset() of its environment failed: {said(error)}"
            ) from error
        if noted is not None and id(env) not in self._accepted:
            if not noted.seen and info.get("task") != name:
                raise MasteryError(
                    f"the environment {env} does not accept tasks: its reset() did not read "
                    "options['task']; make it do so, or give a make_env that takes a task's name"
                )
            self._accepted.add(id(env))
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the current task's environment."""
        return self.env.step(action)

    def close(self) -> None:
        """Close all environments."""
        while self._kept:
            self._put_away(self._kept.popitem()[1])

    def _environment(self, task: int) -> Env:
        key = 0 if self._maker.one_for_all else task
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        env = self._maker(task)
        if _OWNERS.get(id(env.unwrapped), self) is not self:
            raise MasteryError(
                f"task {self._maker.names[task]!r}: the environment {env} already has a teacher; "
                "make_env must return a new environment at each call, without a curriculum"
            )
        self._check(task, env)
        self._kept[key], _OWNERS[id(env.unwrapped)] = env, self
        if len(self._kept) > self._keep:
            self._put_away(self._kept.popitem(last=False)[1])
        return env

    def _put_away(self, env: Env) -> None:
        if all(env is not kept for kept in self._kept.values()):
            _OWNERS.pop(id(env.unwrapped), None)
            self._seeded.discard(id(env))
            env.close()

    def _seed(self, env: Env, seed: int | None) -> int | None:
        """The seed for this reset. Once one is given, each environment gets one drawn from it."""
        if seed is not None:
            self._seeds, self._seeded = np.random.default_rng(seed), set()
        elif self._seeds is not None and id(env) not in self._seeded:
            seed = int(self._seeds.integers(2**31))
        self._seeded.add(id(env))
        return seed

    def _check(self, task: int, env: Env) -> None:
        for what in ("observation_space", "action_space"):
            mine = getattr(env, what)
            first = self._spaces.setdefault(what, mine)
            if mine != first and not (what == "observation_space" and _alike(mine, first)):
                raise MasteryError(
                    f"tasks {self._maker.names[0]!r} and {self._maker.names[task]!r} differ in "
                    f"{what}: {first} and {mine}; wrap the environments so that they are equal, or "
                    "remove one of the tasks"
                )


_OWNERS: WeakValueDictionary[int, TaskEnv] = WeakValueDictionary()  # by id of the bare environment


class _Noted(dict[str, Any]):
    """Reset options that record whether the environment has read its task."""

    seen = False

    def __getitem__(self, key: str) -> Any:
        self.seen = self.seen or key == "task"
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.seen = self.seen or key == "task"
        return super().get(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        self.seen = self.seen or key == "task"
        return super().pop(key, *default)

    def keys(self) -> Any:  # for {**options}, dict(options) etc.
        self.seen = True
        return super().keys()

    def items(self) -> Any:
        self.seen = True
        return super().items()

    def __iter__(self) -> Any:
        self.seen = True
        return super().__iter__()


def _takes_task(function: Callable[..., Any]) -> bool:
    """Whether a function requires an argument, or its first one is named `task`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # built-ins have no signature
        return True
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p.name for p in places if p.default is p.empty]
    if len(needed) > 1:
        raise MasteryError(
            f"make_env needs {len(needed)} arguments ({', '.join(needed)}); it must take a task's "
            "name, or nothing"
        )
    return bool(needed) or (bool(places) and places[0].name == "task")


def _alike(a: Any, b: Any) -> bool:
    """Whether two boxes differ only in their bounds."""
    both = isinstance(a, spaces.Box) and isinstance(b, spaces.Box)
    return both and a.shape == b.shape and a.dtype == b.dtype
