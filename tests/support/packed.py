"""Read what a report embeds, without the code that wrote it."""

import base64
import gzip
import json
import re

import numpy as np


def embedded(path, name):
    """A document in a report: `index`, or a job's key."""
    text = re.search(rf'data-name="{name}">([^<]*)<', path.read_text())[1]
    return unpack(gzip.decompress(base64.b64decode(text)))


def unpack(data):
    """What `pack` describes, read without its code."""
    length = int.from_bytes(data[:4], "little")
    head, body = json.loads(data[4 : 4 + length]), data[4 + length :]

    def restored(value):
        if isinstance(value, dict) and isinstance(value.get("packed"), list):
            at, size, scale, *shape = value["packed"]
            n = int(np.prod(shape))
            planes = [body[at + k * n : at + (k + 1) * n] for k in range(size)]
            whole = b"".join(bytes(number) for number in zip(*planes, strict=True))
            kind = {0: "<f4"}.get(scale, f"<i{size}")
            x = np.frombuffer(whole, kind).reshape(shape).astype(float)
            return np.where(x == np.iinfo(kind).min, np.nan, x / scale) if scale else x
        if isinstance(value, dict):
            return {key: restored(inner) for key, inner in value.items()}
        return value

    return restored(head)
