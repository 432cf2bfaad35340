"""A small stand-in for `vllm serve`: the endpoints that TRL's asynchronous trainer calls.

It samples from a real model, token by token, and takes new weights from the trainer. Besides it,
`attention` is the attention kernel that TRL downloads for a GPU, in plain PyTorch.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import torch


class CompletionServer:
    """Serves one model on a port of this machine; also the trainer's `weight_transfer`."""

    def __init__(self, model, length=32):
        self.model, self.length = model.eval(), length
        self.lock = threading.Lock()
        self.requests, self.syncs = [], 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                known = {
                    "/health": {},
                    "/v1/models": {"data": [{"max_model_len": outer.length}]},
                }
                self.reply(known.get(self.path.partition("?")[0]))

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.reply(outer.complete(asked) if self.path == "/v1/completions" else None)

            def reply(self, found):
                body = json.dumps(found or {}).encode()
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def complete(self, asked):
        """Sample a completion of a prompt of tokens."""
        random = torch.Generator().manual_seed(asked["seed"] % 2**31)
        tokens, logs, ids = [], [], list(asked["prompt"])
        with self.lock, torch.no_grad():
            self.requests.append(tuple(ids))
            while len(tokens) < asked["max_tokens"]:
                logits = self.model(input_ids=torch.tensor([ids])).logits[0, -1]
                p = torch.log_softmax(logits.float() / asked["temperature"], -1)
                token = int(torch.multinomial(p.exp(), 1, generator=random))
                tokens.append(token)
                logs.append(float(p[token]))
                ids.append(token)
                if token == self.model.config.eos_token_id:
                    break
        return {"choices": [{"token_ids": tokens, "logprobs": {"token_logprobs": logs}}]}

    def init_weight_transfer(self):
        pass

    def pause(self):
        self.lock.acquire()

    def send_weights(self, iterator):
        own = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, value in iterator:
                own[name].copy_(value)
        self.syncs += 1

    def resume(self):
        self.lock.release()

    def destroy(self):
        pass

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def attention(query, key, value, starts_q, starts_k, *_, softmax_scale, causal, **rest):
    """Each segment of queries sees its own keys, the last of which is its last query."""
    assert causal
    found = []
    for i in range(len(starts_q) - 1):
        q = query[starts_q[i] : starts_q[i + 1]].transpose(0, 1)
        k, v = (x[starts_k[i] : starts_k[i + 1]].transpose(0, 1) for x in (key, value))
        scores = q @ k.transpose(1, 2) * softmax_scale
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(k.shape[1] - q.shape[1] + 1)
        found.append((scores.masked_fill(ahead, -torch.inf).softmax(-1) @ v).transpose(0, 1))
    return torch.cat(found)


KERNELS = SimpleNamespace(flash_attn_varlen_func=attention)
