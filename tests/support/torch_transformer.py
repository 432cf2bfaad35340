"""The transformer and GRPO in plain PyTorch, in double precision, for comparison.

It runs one sequence at a time: a prompt without its padding, then a completion. So it knows neither
padding nor masks nor caches nor shared prompts; positions count from the prompt's first symbol,
which is the same, since RoPE depends on differences of positions only.
"""

import math

import numpy as np
import torch

from mastery.reasoning.alphabet import PAD

torch.set_num_threads(1)  # the matrices are tiny


def weights(model):
    """The weights of a JAX transformer by name, as leaves that collect gradients."""
    named = {"symbols": model.symbols, "scale": model.scale, "out": model.out}
    for i, block in enumerate(model.blocks):
        for name in ("attention", "joined", "up", "down", "scales"):
            named[f"{i}.{name}"] = getattr(block, name)
    return {
        name: torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=True)
        for name, x in named.items()
    }


def rms_norm(x, scale):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * scale


def rope(x):
    """Features i and i + k/2 are a pair, turned by position · 10000^(−2i/k); x is (t, h, k)."""
    t, _, k = x.shape
    turned = torch.empty_like(x)
    for i in range(k // 2):
        angle = torch.arange(t, dtype=torch.float64) * 10_000.0 ** (-2 * i / k)
        number = torch.complex(x[..., i], x[..., i + k // 2])
        number = number * torch.polar(torch.ones(t, dtype=torch.float64), angle)[:, None]
        turned[..., i], turned[..., i + k // 2] = number.real, number.imag
    return turned


def sequence_logits(w, heads, symbols):
    """The logits (t, SYMBOLS) after each symbol of a sequence."""
    x = w["symbols"][torch.tensor(symbols)]
    t, width = x.shape
    causal = torch.ones(t, t).tril().bool()
    layer = 0
    while f"{layer}.up" in w:
        attention, joined, up, down, scales = (
            w[f"{layer}.{name}"] for name in ("attention", "joined", "up", "down", "scales")
        )
        normal = rms_norm(x, scales[0])
        q, k, v = ((normal @ part).reshape(t, heads, -1) for part in attention.split(width, dim=1))
        q, k = rope(q), rope(k)
        found = []
        for head in range(heads):
            scores = q[:, head] @ k[:, head].T / math.sqrt(width / heads)
            shares = scores.masked_fill(~causal, -math.inf).softmax(-1)
            found.append(shares @ v[:, head])
        x = x + torch.cat(found, -1) @ joined
        hidden = torch.nn.functional.gelu(rms_norm(x, scales[1]) @ up, approximate="tanh")
        x = x + hidden @ down
        layer += 1
    return rms_norm(x, w["scale"]) @ w["out"]


def completion_logits(w, heads, prompt, completion):
    """The logits (a, SYMBOLS) of each symbol of one completion."""
    known = [int(s) for s in prompt if s != PAD]
    given = [*known, *(int(s) for s in completion[:-1])]
    return sequence_logits(w, heads, given)[len(known) - 1 :]


def log_probabilities(w, heads, prompt, completion):
    """(a,): of each symbol of one completion."""
    logits = completion_logits(w, heads, prompt, completion)
    chosen = torch.tensor([int(s) for s in completion])
    return logits.log_softmax(-1)[torch.arange(len(chosen)), chosen]


def advantages(rewards):
    """A_i = (r_i − mean r) / (std r + 1e-6) of one group; zeros if all are equal."""
    mean = sum(rewards) / len(rewards)
    std = math.sqrt(sum((r - mean) ** 2 for r in rewards) / len(rewards))
    return [0.0 if std == 0 else (r - mean) / (std + 1e-6) for r in rewards]


def loss(w, heads, seen, clip, clip_high, drop):
    """− Σ min(ρ A, clip(ρ) A) / (number of symbols)."""
    total, symbols = torch.zeros((), dtype=torch.float64), 0.0
    groups = zip(seen.prompt, seen.completion, seen.log_probability, seen.advantage, strict=True)
    for prompt, completions, olds, group in groups:
        group = np.asarray(group, float)
        counts = 1.0 if np.any(group != 0) else 1.0 - drop
        for completion, old, a in zip(completions, olds, group, strict=True):
            counted = torch.tensor([int(s) != PAD for s in completion])
            new = log_probabilities(w, heads, prompt, completion)
            ratio = torch.exp(new - torch.tensor(np.asarray(old), dtype=torch.float64))[counted]
            gained = torch.min(ratio * a, ratio.clamp(1 - clip, 1 + clip_high) * a)
            total = total + gained.sum()
            symbols += counts * len(gained)
    return -total / max(symbols, 1.0)
