"""A recurrent PPO agent and its learning: one run, from top to bottom.

    PPOSettings  how the agent is built and trained
    Agent        the network: observation → encoder → memory → policy and value
    segments     cut what was played into training data; add the novelty reward
    advantages   generalised advantage estimation
    loss         the clipped objective
    improve      epochs of minibatches

`ppo_minigrid` plays our own MiniGrid with it, `mastery.training.loops.gymnasium` any Gymnasium
environments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

from mastery.errors import MasteryError
from mastery.learners.adam import AdamState, adam
from mastery.learners.encoders import INITIAL, Linear, Space, make_encoder
from mastery.learners.kernels import agent as kernels
from mastery.learners.settings import LearnerKind, check_numbers, setting
from mastery.minigrid.editions import EDITIONS
from mastery.minigrid.rules import REWARDS
from mastery.random_numbers import Normals

Array = Any  # a JAX array


@dataclass(frozen=True)
class PPOSettings:
    """How an agent is built and trained. `float` settings may differ from run to run."""

    envs: int = setting(16, "environments per run")
    frames: int = setting(128, "frames per environment and update")
    epochs: int = setting(4, "passes over these frames per update")
    batch: int = setting(256, "frames per minibatch")
    bptt: int = setting(8, "length of backpropagation through time, in frames")
    ahead: int = setting(16, "levels generated ahead per environment, so that none is played twice")
    learning_rate: float = setting(7e-4, "of Adam")
    epsilon: float = setting(1e-8, "of Adam, added to the denominator")
    discount: float = setting(0.99, "discount factor γ")
    gae: float = setting(0.95, "λ of generalised advantage estimation")
    entropy: float = setting(0.0025, "weight of the entropy bonus")
    value: float = setting(0.5, "weight of the value loss")
    clip: float = setting(0.2, "clipping range ε of PPO's probability ratio")
    gradient_norm: float = setting(2.0, "gradients are clipped to this norm")
    reward_scale: float = setting(5.0, "factor of PPO's rewards; a teacher sees them unscaled")
    novelty: float = setting(0.003, "PPO's extra reward for a view that is new in its episode")
    normalise: bool = setting(False, "scale advantages to mean 0 and deviation 1 in each minibatch")
    clip_value: bool = setting(False, "clip the change of the value, as for the policy")
    encoding: str = setting("onehot", "of MiniGrid's cells: onehot, or raw (three numbers each)")
    initial: str = setting("scaled", "weights: scaled, or pytorch (its defaults except the heads)")
    memory: str = setting("lstm", "lstm or none")
    skip: bool = setting(True, "with an lstm: the heads also see the lstm's input")
    width: int = setting(64, "units in the embedding, the memory and the heads")
    actions: int = setting(6, "of MiniGrid: 6, or 7 with 'done', which does nothing")
    reward: str = setting("paper", "of a success: paper (1 − n/n_max), minigrid (1 − 0.9 n/n_max)")
    edition: str = setting("3.2.0", "of MiniGrid: 3.2.0, or 2018 (that of the paper's runs)")

    unit: ClassVar[str] = "frames"

    @property
    def per_update(self) -> int:
        """Frames per update."""
        return self.envs * self.frames

    def parts(self, most: int) -> int:
        """Number of devices that can share one run, at most `most`: always 1."""
        return 1

    def __post_init__(self) -> None:
        for name, known in (
            ("encoding", ("onehot", "raw")),
            ("memory", ("lstm", "none")),
            ("reward", tuple(REWARDS)),
            ("initial", tuple(INITIAL)),
            ("edition", tuple(EDITIONS)),
        ):
            if getattr(self, name) not in known:
                raise MasteryError(
                    f"{name} is {getattr(self, name)!r}; choose from {', '.join(known)}"
                )
        positive = ("learning_rate", "epsilon", "clip", "gradient_norm")
        check_numbers(self, positive, shares=("discount", "gae"))
        if self.actions not in (6, 7):
            raise MasteryError(f"actions is {self.actions}; MiniGrid has 6, or 7 with 'done'")
        for whole, part in (("frames", "bptt"), ("batch", "bptt")):
            if getattr(self, whole) % getattr(self, part):
                raise MasteryError(f"{whole} must be a multiple of {part}, {getattr(self, part)}")
        if self.envs * self.frames % self.batch:
            raise MasteryError(
                f"batch is {self.batch}: the {self.envs} · {self.frames} frames of an update must "
                "be a multiple of it"
            )


# the paper's appendix, or the authors' code of 2019 where the paper says nothing
PAPER_2019 = PPOSettings(
    learning_rate=1e-3,
    entropy=0.01,
    gradient_norm=0.5,
    reward_scale=20.0,
    novelty=0.0,
    clip_value=True,
    encoding="raw",
    skip=False,
    actions=7,
)
# the agent and MiniGrid of September 2018, the time of the paper's runs
PAPER = replace(
    PAPER_2019,
    bptt=1,
    learning_rate=7e-4,
    epsilon=1e-5,
    initial="pytorch",
    reward="minigrid",
    edition="2018",
)
# for a CPU: as many steps of Adam, each on half as many frames
LIGHT = PPOSettings(epochs=2, batch=128)
# for a few runs on a GPU: what learns in the fewest seconds (benchmarks/choose_fast.py), and then
# does not lose it: with a norm of 2 one bad update destroys an agent (benchmarks/stays_learned.py)
FAST = PPOSettings(
    envs=512,
    frames=64,
    epochs=2,
    batch=4096,
    ahead=8,
    learning_rate=2e-3,
    gradient_norm=0.05,
)
FAST_RUNS = 16  # with more, the default's runs fill a GPU, and need fewer frames


class PPOHyper(NamedTuple):
    """The settings that may differ from run to run, as arrays."""

    learning_rate: Array
    epsilon: Array
    discount: Array
    gae: Array
    entropy: Array
    value: Array
    clip: Array
    gradient_norm: Array
    reward_scale: Array
    novelty: Array

    @classmethod
    def of(cls, settings: PPOSettings) -> PPOHyper:
        return cls(*(jnp.float32(getattr(settings, name)) for name in cls._fields))


PPO = LearnerKind(
    PPOSettings,
    PPOHyper,
    presets={
        "default": PPOSettings(),
        "fast": FAST,
        "light": LIGHT,
        "paper": PAPER,
        "paper-2019": PAPER_2019,
    },
)


class Agent(eqx.Module):
    """Observation → encoder → memory → policy and value. All arrays are columns: (features, n)."""

    encoder: Any
    lstm: tuple[Linear, Linear] | None  # gates from the input, and from the hidden state
    policy: tuple[Linear, Linear]
    value: tuple[Linear, Linear]
    skip: bool = eqx.field(static=True)
    forget: float = eqx.field(static=True)  # added to the forget gate

    def __init__(self, key: Array, settings: PPOSettings, space: Space) -> None:
        normals, width, initial = Normals(key), settings.width, INITIAL[settings.initial]
        self.encoder = make_encoder(
            normals, space, width, settings.encoding, settings.edition, settings.initial
        )
        gates = [initial.gates(normals, width, 4 * width) for _ in range(2)]
        self.lstm = (gates[0], gates[1]) if settings.memory == "lstm" else None
        self.skip, self.forget = settings.skip, initial.forget
        seen = 2 * width if self.lstm is not None and self.skip else width
        last = initial.policy(normals, width, space.actions)
        self.policy = Linear(normals, seen, width), last
        self.value = Linear(normals, seen, width), Linear(normals, width, 1)

    @property
    def memory_size(self) -> int:
        return 0 if self.lstm is None else self.lstm[0].bias.shape[-1] // 2

    def remember(self, memory: Array, starts: Array, x: Array) -> tuple[Array, Array]:
        """Run the memory over several frames of n environments.

        Args:
            memory: (memory_size, n).
            starts: bool (frames, n), True where an episode begins, with an empty memory.
            x: (width, frames · n), the n columns of a frame side by side.

        Returns:
            The new memory (memory_size, n), and the input of the heads (…, frames · n).
        """
        if self.lstm is None:
            return memory, x
        seen, remembered = self.lstm

        def one(state: Any, frame: Any) -> Any:
            gates, start = frame
            h, c = (jnp.where(start, 0.0, m) for m in state)
            i, f, g, o = jnp.split(gates + remembered(h), 4)
            c = jax.nn.sigmoid(f + self.forget) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        gates = jnp.swapaxes(seen(x).reshape(-1, *starts.shape), 0, 1)
        # a loop compiles faster, but is slower on a GPU
        straight = jax.default_backend() != "cpu" or len(starts) == 1
        state = tuple(jnp.split(memory, 2))
        state, hidden = lax.scan(one, state, (gates, starts), unroll=straight)
        out = jnp.swapaxes(hidden, 0, 1).reshape(-1, x.shape[1])
        return jnp.concatenate(state), jnp.concatenate([out, x]) if self.skip else out

    def judge(self, x: Array) -> tuple[Array, Array]:
        """Action logits (n, actions) and values (n,), from the input of the heads."""
        (p1, p2), (v1, v2) = self.policy, self.value
        return p2(jnp.tanh(p1(x))).T, v2(jnp.tanh(v1(x)))[0]

    def player(self, envs: int) -> Callable[[Array, Array, Array], tuple[Array, Array, Array]]:
        """`over` for many steps of this number of environments, without gradients."""
        player: Callable[..., Any] = kernels.player(self) if kernels.fit(self, envs) else self.over
        return player

    def __call__(
        self, memory: Array, starts: Array, observation: Array
    ) -> tuple[Array, Array, Array]:
        """New memory, logits and values, for one observation in each of n environments."""
        return self.over(memory, starts[None], observation)

    def over(self, memory: Array, starts: Array, observation: Array) -> tuple[Array, Array, Array]:
        """Run the agent over several frames of n environments.

        Args:
            memory: (memory_size, n).
            starts: bool (frames, n), True where an episode begins, with an empty memory.
            observation: (frames · n, …), the n of a frame side by side.

        Returns:
            The new memory, logits (frames · n, actions) and values (frames · n,).
        """
        if kernels.fit(self, starts.shape[1]):
            found: tuple[Array, Array, Array] = kernels.over(self, memory, starts, observation)
            return found
        memory, x = self.remember(memory, starts, self.encoder(observation))
        return memory, *self.judge(x)


def choose(logits: Array, uniforms: Array) -> Array:
    """Draw an action for each row of logits, given one uniform in [0, 1) per row."""
    sums = jnp.cumsum(jax.nn.softmax(logits), -1)
    beyond = (sums <= uniforms[:, None] * sums[:, -1:]).sum(-1, dtype=jnp.int32)
    return jnp.minimum(beyond, logits.shape[-1] - 1)


class Trajectory(NamedTuple):
    """What was played, frame by frame; each field is (frames, envs, …)."""

    observation: Array
    starts: Array  # bool: the first frame of an episode
    action: Array  # int32
    log_probability: Array  # of the action, when it was chosen
    value: Array  # estimated at that frame
    reward: Array  # from the environment, unscaled
    ended: Array  # bool: the last frame of an episode
    new: Array  # bool: the next view is new in the episode
    memory: Array  # (frames / bptt, memory_size, envs): before each segment


class Frames(NamedTuple):
    """Training data, in segments of `bptt` frames of one environment."""

    observation: Array  # (segments, bptt, …)
    starts: Array  # bool (segments, bptt)
    action: Array
    log_probability: Array
    value: Array
    advantage: Array
    memory: Array  # (segments, memory_size)


def segments(trajectory: Trajectory, last: Array, settings: PPOSettings, h: PPOHyper) -> Frames:
    """Cut a trajectory into training data. `last` (envs,): values after the last frame."""
    _, starts, _, _, value, reward, ended, new, memory = trajectory
    reward = h.reward_scale * (reward + h.novelty * (new & ~ended))
    advantage = advantages(reward, value, ended, last, h.discount, h.gae)

    def cut(x: Array) -> Array:
        x = x.reshape(-1, settings.bptt, *x.shape[1:])  # (frames / bptt, bptt, envs, …)
        return jnp.swapaxes(x, 1, 2).reshape(-1, settings.bptt, *x.shape[3:])

    return Frames(
        observation=cut(trajectory.observation),
        starts=cut(starts),
        action=cut(trajectory.action),
        log_probability=cut(trajectory.log_probability),
        value=cut(value),
        advantage=cut(advantage),
        memory=jnp.swapaxes(memory, 1, 2).reshape(starts.size // settings.bptt, memory.shape[1]),
    )


def log_probability(logits: Array, action: Array) -> Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]


def advantages(
    reward: Array, value: Array, ended: Array, last: Array, discount: Array, gae: Array
) -> Array:
    """Â_t = δ_t + γ λ Â_{t+1} with δ_t = r_t + γ V_{t+1} − V_t.

    At the last frame of an episode, Â_{t+1} and V_{t+1} are 0.

    Args:
        reward: (frames, envs).
        value: (frames, envs), V_t.
        ended: bool (frames, envs), True at the last frame of an episode.
        last: (envs,), the value after the last frame.
        discount: γ.
        gae: λ.

    Returns:
        Â, (frames, envs).
    """

    def one(following: Any, frame: Any) -> Any:
        next_advantage, next_value = following
        r, v, over = frame
        delta = r + discount * jnp.where(over, 0.0, next_value) - v
        advantage = delta + discount * gae * jnp.where(over, 0.0, next_advantage)
        return (advantage, v), advantage

    start = (jnp.zeros_like(last), last)
    return lax.scan(one, start, (reward, value, ended), reverse=True)[1]


def loss(agent: Agent, frames: Frames, settings: PPOSettings, h: PPOHyper) -> Array:
    """The loss of a minibatch of segments; see `ppo_loss`."""
    logits, value = replay(agent, frames)
    return ppo_loss(logits, value, frames, settings, h)


def replay(agent: Agent, frames: Frames) -> tuple[Array, Array]:
    """The current agent's logits (N, bptt, actions) and values (N, bptt) for N segments."""
    n, bptt = frames.action.shape
    in_time = jnp.swapaxes(frames.observation, 0, 1)
    in_time = in_time.reshape(-1, *in_time.shape[2:])
    _, logits, value = agent.over(frames.memory.T, frames.starts.T, in_time)
    return jnp.swapaxes(logits.reshape(bptt, n, -1), 0, 1), value.reshape(bptt, n).T


def ppo_loss(
    logits: Array, value: Array, frames: Frames, settings: PPOSettings, h: PPOHyper
) -> Array:
    """−E[min(ρ Â, clip(ρ, 1 − ε, 1 + ε) Â)] + c_v E[(V − R)²] − c_e E[H], to minimise."""
    advantage, target = frames.advantage, frames.advantage + frames.value
    if settings.normalise:
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = jnp.exp(log_probability(logits, frames.action) - frames.log_probability)
    clipped = jnp.clip(ratio, 1 - h.clip, 1 + h.clip)
    policy = -jnp.minimum(ratio * advantage, clipped * advantage).mean()
    error = (value - target) ** 2
    if settings.clip_value:
        near = frames.value + jnp.clip(value - frames.value, -h.clip, h.clip)
        error = jnp.maximum(error, (near - target) ** 2)
    log_p = jax.nn.log_softmax(logits)
    entropy = -(jnp.exp(log_p) * log_p).sum(-1).mean()
    return policy + h.value * error.mean() - h.entropy * entropy


def improve(
    agent: Agent,
    optimiser: AdamState,
    frames: Frames,
    key: Array,
    settings: PPOSettings,
    h: PPOHyper,
) -> tuple[Agent, AdamState]:
    """Train on the frames for `settings.epochs` epochs, in minibatches of whole segments."""
    # all weights as one vector: on a GPU a step of Adam is then one kernel, not one a layer
    weights, agent_of = ravel_pytree(agent)
    state = AdamState(optimiser.count, *(ravel_pytree(x)[0] for x in optimiser[1:]))

    def one(carry: Any, index: Array) -> Any:
        weights, state = carry
        batch = jax.tree.map(lambda x: x[index], frames)
        gradient, _ = ravel_pytree(eqx.filter_grad(loss)(agent_of(weights), batch, settings, h))
        length = jnp.sqrt((gradient**2).sum())
        gradient = gradient * jnp.minimum(1.0, h.gradient_norm / (length + 1e-6))
        return adam(weights, gradient, state, h.learning_rate, h.epsilon), None

    keys = jax.random.split(key, settings.epochs)
    order = jax.vmap(lambda k: jax.random.permutation(k, len(frames.action)))(keys)
    minibatches = order.reshape(-1, settings.batch // settings.bptt)
    (weights, state), _ = lax.scan(one, (weights, state), minibatches)
    return agent_of(weights), AdamState(state.count, agent_of(state.mu), agent_of(state.nu))
