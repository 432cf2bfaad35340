"""A recurrent PPO agent on MiniGrid: one run, from top to bottom.

    Settings      how it is built and trained
    Agent         the network: view → convolutions → memory → policy and value
    collect       play with it, on fresh levels of tasks drawn from given probabilities
    advantages    generalised advantage estimation
    loss          the clipped objective
    improve       epochs of minibatches
    update        all of that, once; a time-step of a teacher

Nothing here knows of more than one run: `jax.vmap` over `begin` and `update` makes it many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax

from mastery.errors import MasteryError
from mastery.minigrid import engine
from mastery.minigrid.tasks import TASKS
from mastery.minigrid.vision import decode, seen_cells

Array = Any  # a JAX array


@dataclass(frozen=True)
class Settings:
    """How an agent is built and trained. Those that are `float` may differ from run to run."""

    envs: int = 16  # environments of one run
    frames: int = 128  # frames of each environment between two updates
    epochs: int = 4  # how often these frames are gone through
    batch: int = 256  # frames in a minibatch
    bptt: int = 8  # frames through which gradients flow back in time
    ahead: int = 16  # levels made ahead for each environment, so that none is played twice
    learning_rate: float = 5e-4  # Adam's
    discount: float = 0.99  # γ
    gae: float = 0.95  # λ of the advantage estimation
    entropy: float = 0.01  # weight of the policy's entropy
    value: float = 0.5  # weight of the value's error
    clip: float = 0.2  # how far the policy may move in one update
    gradient_norm: float = 0.5  # the longest gradient
    reward_scale: float = 20.0  # of the rewards PPO sees; a teacher sees them as they are
    normalise: bool = False  # advantages to mean 0 and deviation 1 in each minibatch
    clip_value: bool = False  # clip the value's movement as the policy's
    encoding: str = "onehot"  # of the view: onehot, or raw (the three numbers of each cell)
    memory: str = "lstm"  # lstm or none
    skip: bool = True  # the heads see the view as well as the memory
    width: int = 64  # of the embedding, the memory and the heads
    actions: int = 6  # 7 with "done", which does nothing

    def __post_init__(self) -> None:
        for name, known in (("encoding", ("onehot", "raw")), ("memory", ("lstm", "none"))):
            if getattr(self, name) not in known:
                raise MasteryError(
                    f"{name} is {getattr(self, name)!r}; there is {' and '.join(known)}"
                )
        for whole, part in (("frames", "bptt"), ("batch", "bptt")):
            if getattr(self, whole) % getattr(self, part):
                raise MasteryError(f"{whole} must be a multiple of {part}, {getattr(self, part)}")
        if self.envs * self.frames % self.batch:
            raise MasteryError(
                f"batch is {self.batch}: the {self.envs} · {self.frames} frames of an update must "
                "be a multiple of it"
            )


# the paper's appendix, and the authors' code where the paper is silent
PAPER = Settings(
    learning_rate=1e-3,
    clip_value=True,
    encoding="raw",
    skip=False,
    actions=7,
)


class Hyper(NamedTuple):
    """The settings that may differ from run to run, as arrays."""

    learning_rate: Array
    discount: Array
    gae: Array
    entropy: Array
    value: Array
    clip: Array
    gradient_norm: Array
    reward_scale: Array

    @classmethod
    def of(cls, settings: Settings) -> Hyper:
        return cls(*(jnp.float32(getattr(settings, name)) for name in cls._fields))


class Linear(eqx.Module):
    weight: Array  # (inputs, outputs)
    bias: Array  # (outputs,)

    def __init__(self, key: Array, inputs: int, outputs: int, gain: float = 1.0) -> None:
        # the weights of each output have this length together, as in the authors' code
        weight = jax.random.normal(key, (inputs, outputs))
        self.weight = gain * weight / jnp.linalg.norm(weight, axis=0)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array) -> Array:
        return x @ self.weight + self.bias


class Agent(eqx.Module):
    """View → convolutions → memory → policy and value."""

    convolutions: tuple[Linear, ...]
    lstm: Linear | None
    policy: tuple[Linear, Linear]
    value: tuple[Linear, Linear]
    encoding: str = eqx.field(static=True)
    skip: bool = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def __init__(self, key: Array, settings: Settings) -> None:
        keys = iter(jax.random.split(key, 8))
        width = settings.width
        channels = 17 if settings.encoding == "onehot" else 3
        # 2 × 2 convolutions as matrix products of patches: the weights differ from run to run, and
        # a convolution with a batch of weights is slow
        sizes = ((channels, 16), (16, 32), (32, width))
        self.convolutions = tuple(Linear(next(keys), 4 * i, o, gain=2**0.5) for i, o in sizes)
        self.lstm = Linear(next(keys), 2 * width, 4 * width) if settings.memory == "lstm" else None
        self.encoding, self.skip, self.width = settings.encoding, settings.skip, width
        seen = 2 * width if self.lstm is not None and self.skip else width
        last = Linear(next(keys), width, settings.actions, gain=0.01)  # nearly uniform at first
        self.policy = Linear(next(keys), seen, width), last
        self.value = Linear(next(keys), seen, width), Linear(next(keys), width, 1)

    def embed(self, cells: Array) -> Array:
        """Views, uint8 (..., 7, 7), to vectors (..., width)."""
        x = _one_hot(cells) if self.encoding == "onehot" else decode(cells).astype(jnp.float32)
        first, second, third = self.convolutions
        x = jax.nn.relu(first(_patches(x)))
        x = x.reshape(*x.shape[:-3], 3, 2, 3, 2, x.shape[-1]).max((-2, -4))
        x = jax.nn.relu(second(_patches(x)))
        x = jax.nn.relu(third(_patches(x)))
        return x.reshape(*x.shape[:-3], self.width)

    def remember(self, memory: Array, x: Array) -> tuple[Array, Array]:
        """One step of the LSTM: new memory, (..., 2, width), and what the heads see."""
        if self.lstm is None:
            return memory, x
        h, c = memory[..., 0, :], memory[..., 1, :]
        i, f, g, o = jnp.split(self.lstm(jnp.concatenate([x, h], -1)), 4, -1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return jnp.stack([h, c], -2), jnp.concatenate([h, x], -1) if self.skip else h

    def judge(self, x: Array) -> tuple[Array, Array]:
        """Logits of the actions, and the value."""
        (p1, p2), (v1, v2) = self.policy, self.value
        return p2(jnp.tanh(p1(x))), v2(jnp.tanh(v1(x)))[..., 0]


def _one_hot(cells: Array) -> Array:
    """Cells as 17 zeros and ones: eight types, six colours, three states of a door."""
    kind, colour, state = jnp.split(decode(cells), 3, -1)
    parts = (
        kind == jnp.arange(8, dtype=jnp.uint8),
        (colour == jnp.arange(6, dtype=jnp.uint8)) & (kind > 1),
        (state == jnp.arange(3, dtype=jnp.uint8)) & (kind == 4),
    )
    return jnp.concatenate(parts, -1).astype(jnp.float32)


def _patches(x: Array) -> Array:
    """Every 2 × 2 patch of (..., height, width, channels), its four cells side by side."""
    height, width = x.shape[-3:-1]
    corners = [x[..., i : height - 1 + i, j : width - 1 + j, :] for i in range(2) for j in range(2)]
    return jnp.concatenate(corners, -1)


class Environments(NamedTuple):
    """Where the environments of a run stand."""

    state: Any
    pool: engine.Pool
    memory: Array  # (envs, 2, width)
    starts: Array  # (envs,) bool: the next frame is the first of an episode


class Frames(NamedTuple):
    """What was seen and done, in segments: stretches of `bptt` frames of one environment."""

    cells: Array  # uint8 (segments, bptt, 7, 7)
    starts: Array  # bool (segments, bptt): the first frame of an episode
    action: Array  # int32 (segments, bptt)
    log_probability: Array  # of the action when it was chosen
    value: Array  # as it was judged then
    advantage: Array
    memory: Array  # (segments, 2, width): before the first frame


class Played(NamedTuple):
    """What was played, of each of the eighteen tasks; (18,) each."""

    episodes: Array  # that ended
    returns: Array  # their sum
    frames: Array


def collect(
    agent: Agent, envs: Environments, key: Array, settings: Settings, h: Hyper
) -> tuple[Environments, Frames, Played]:
    """Play `frames` steps in every environment, with actions drawn from the policy."""

    def one(envs: Environments, key: Array) -> Any:
        state, pool, memory, starts = envs
        cells = seen_cells(state)
        memory, x = agent.remember(_forget(memory, starts), agent.embed(cells))
        logits, value = agent.judge(x)
        action = jax.random.categorical(key, logits)
        state, pool, outcome = engine.step(state, pool, action)
        ended = outcome.terminated | outcome.truncated
        chosen = _log_probability(logits, action)
        seen = (cells, starts, action, chosen, value, ended, outcome.reward, outcome.task)
        return Environments(state, pool, memory, ended), seen

    def segment(envs: Environments, keys: Array) -> Any:
        before = envs.memory
        envs, seen = lax.scan(one, envs, keys)
        return envs, (seen, before)

    segments = settings.frames // settings.bptt
    keys = jax.random.split(key, (segments, settings.bptt))
    envs, (seen, memory) = lax.scan(segment, envs, keys)  # each (segments, bptt, envs, …)
    cells, starts, action, chosen, value, ended, reward, task = seen
    after = _forget(envs.memory, envs.starts)
    _, x = agent.remember(after, agent.embed(seen_cells(envs.state)))
    _, last = agent.judge(x)

    def in_time(x: Array) -> Array:
        return x.reshape(settings.frames, settings.envs)

    advantage = advantages(
        in_time(reward) * h.reward_scale, in_time(value), in_time(ended), last, h.discount, h.gae
    ).reshape(value.shape)

    def by_segment(x: Array) -> Array:
        return jnp.swapaxes(x, 1, 2).reshape(-1, settings.bptt, *x.shape[3:])

    frames = Frames(
        cells=by_segment(cells),
        starts=by_segment(starts),
        action=by_segment(action),
        log_probability=by_segment(chosen),
        value=by_segment(value),
        advantage=by_segment(advantage),
        memory=memory.reshape(-1, *memory.shape[2:]),
    )
    which = task[..., None] == jnp.arange(len(TASKS))
    played = Played(
        episodes=(which & ended[..., None]).sum((0, 1, 2)),
        returns=jnp.where(which, reward[..., None], 0.0).sum((0, 1, 2)),
        frames=which.sum((0, 1, 2)),
    )
    return envs, frames, played


def _forget(memory: Array, starts: Array) -> Array:
    """An episode begins with an empty memory."""
    return jnp.where(starts[..., None, None], 0.0, memory)


def _log_probability(logits: Array, action: Array) -> Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]


def advantages(
    reward: Array, value: Array, ended: Array, last: Array, discount: Array, gae: Array
) -> Array:
    """Â_t = δ_t + γ λ Â_{t+1} with δ_t = r_t + γ V_{t+1} − V_t; nothing comes after an end.

    `reward`, `value` and `ended` (frames, envs): the episode ended with that frame; `last` (envs,):
    the value of what comes after the last frame.
    """

    def one(following: Any, frame: Any) -> Any:
        next_advantage, next_value = following
        r, v, over = frame
        delta = r + discount * jnp.where(over, 0.0, next_value) - v
        advantage = delta + discount * gae * jnp.where(over, 0.0, next_advantage)
        return (advantage, v), advantage

    start = (jnp.zeros_like(last), last)
    return lax.scan(one, start, (reward, value, ended), reverse=True)[1]


def loss(agent: Agent, frames: Frames, settings: Settings, h: Hyper) -> Array:
    """Of a minibatch of segments: see `ppo_loss`."""
    logits, value = replay(agent, frames)
    return ppo_loss(logits, value, frames, settings, h)


def replay(agent: Agent, frames: Frames) -> tuple[Array, Array]:
    """Logits and values of the same frames by the agent as it is now, segments being (N, bptt)."""
    x = agent.embed(frames.cells)
    seen = []
    memory = frames.memory
    for t in range(x.shape[1]):
        memory, out = agent.remember(_forget(memory, frames.starts[:, t]), x[:, t])
        seen.append(out)
    return agent.judge(jnp.stack(seen, 1))


def ppo_loss(logits: Array, value: Array, frames: Frames, settings: Settings, h: Hyper) -> Array:
    """−E[min(ρ Â, clip(ρ, 1 − ε, 1 + ε) Â)] + c_v E[(V − R)²] − c_e E[H], to be made small."""
    advantage, target = frames.advantage, frames.advantage + frames.value
    if settings.normalise:
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = jnp.exp(_log_probability(logits, frames.action) - frames.log_probability)
    clipped = jnp.clip(ratio, 1 - h.clip, 1 + h.clip)
    policy = -jnp.minimum(ratio * advantage, clipped * advantage).mean()
    error = (value - target) ** 2
    if settings.clip_value:
        near = frames.value + jnp.clip(value - frames.value, -h.clip, h.clip)
        error = jnp.maximum(error, (near - target) ** 2)
    log_p = jax.nn.log_softmax(logits)
    entropy = -(jnp.exp(log_p) * log_p).sum(-1).mean()
    return policy + h.value * error.mean() - h.entropy * entropy


_adam = optax.scale_by_adam()


def improve(
    agent: Agent, optimiser: Any, frames: Frames, key: Array, settings: Settings, h: Hyper
) -> tuple[Agent, Any]:
    """Go through the frames `epochs` times, in minibatches of whole segments."""

    def one(carry: Any, index: Array) -> Any:
        agent, optimiser = carry
        batch = jax.tree.map(lambda x: x[index], frames)
        gradient = eqx.filter_grad(loss)(agent, batch, settings, h)
        length = jnp.sqrt(sum((g**2).sum() for g in jax.tree.leaves(gradient)))
        shrink = jnp.minimum(1.0, h.gradient_norm / (length + 1e-6))
        gradient = jax.tree.map(lambda g: g * shrink, gradient)
        change, optimiser = _adam.update(gradient, optimiser)
        change = jax.tree.map(lambda c: -h.learning_rate * c, change)
        return (eqx.apply_updates(agent, change), optimiser), None

    segments = frames.action.shape[0]
    keys = jax.random.split(key, settings.epochs)
    order = jax.vmap(lambda k: jax.random.permutation(k, segments))(keys)
    minibatches = order.reshape(-1, settings.batch // settings.bptt)
    (agent, optimiser), _ = lax.scan(one, (agent, optimiser), minibatches)
    return agent, optimiser


class Learner(NamedTuple):
    """A run: the agent, its optimiser's memory, its environments, its random numbers."""

    agent: Agent
    optimiser: Any
    envs: Environments
    key: Array


def begin(key: Array, probabilities: Array, settings: Settings) -> Learner:
    """A new agent, and environments at the start of their first episodes."""
    key, for_agent, for_levels = jax.random.split(key, 3)
    agent = Agent(for_agent, settings)
    pool, state = engine.reset(for_levels, probabilities, settings.envs, settings.ahead)
    memory = jnp.zeros((settings.envs, 2, settings.width))
    envs = Environments(state, pool, memory, jnp.ones(settings.envs, bool))
    return Learner(agent, _adam.init(eqx.filter(agent, eqx.is_array)), envs, key)


def update(
    learner: Learner, probabilities: Array, settings: Settings, h: Hyper
) -> tuple[Learner, Played]:
    """One update: new levels for the episodes to come, play, learn.

    `probabilities` (18,): of the tasks of the episodes that begin in this update.
    """
    agent, optimiser, envs, key = learner
    key, for_levels, for_actions, for_order = jax.random.split(key, 4)
    envs = envs._replace(pool=engine.refill(for_levels, envs.pool, probabilities))
    envs, frames, played = collect(agent, envs, for_actions, settings, h)
    agent, optimiser = improve(agent, optimiser, frames, for_order, settings, h)
    return Learner(agent, optimiser, envs, key), played
