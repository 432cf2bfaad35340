"""Write TensorBoard event files without TensorBoard: scalars as protocol buffers in records.

    record   length uint64 | masked CRC-32C of the length | data | masked CRC-32C of the data
    data     Event: 1 wall_time double, 2 step int64, 3 file_version string, 5 Summary
    Summary  1 Value, repeated: 1 tag string, 2 simple_value float

The tensorboard package would add gRPC, protobuf, Werkzeug and Pillow as dependencies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping


def event_file(points: Iterable[tuple[float, int, Mapping[str, float]]]) -> Iterator[bytes]:
    """Yield the records of a file; a point is (seconds since 1970, step, scalars by tag)."""
    first = True
    for time, step, scalars in points:
        if first:  # every file begins with this record
            yield _record(_double(1, time) + _bytes(3, b"brain.Event:2"))
            first = False
        values = (_bytes(1, tag.encode()) + _float(2, x) for tag, x in scalars.items())
        summary = b"".join(_bytes(1, value) for value in values)
        yield _record(_double(1, time) + _integer(2, step) + _bytes(5, summary))


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _double(field: int, x: float) -> bytes:
    return bytes([field << 3 | 1]) + struct.pack("<d", x)


def _float(field: int, x: float) -> bytes:
    return bytes([field << 3 | 5]) + struct.pack("<f", x)


def _integer(field: int, x: int) -> bytes:
    return bytes([field << 3]) + _varint(x)


def _bytes(field: int, x: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(x)) + x


def _varint(x: int) -> bytes:
    """Seven bits per byte, lowest first; the highest bit is set if more bytes follow."""
    parts = []
    while x > 127:
        parts.append(x & 127 | 128)
        x >>= 7
    return bytes([*parts, x])


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # Castagnoli's polynomial, reversed
        table.append(byte)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """CRC-32C, computed with a table."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
