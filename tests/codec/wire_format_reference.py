#!/usr/bin/env python3
"""A second decoder of payloads, written for docs/wire_format.md, plain rather than fast.

wire_format_reference.py DIRECTORY decodes every NAME.bin in DIRECTORY and compares with NAME.values, whose lines are
"index bits" for each element that is not zero. It does not check the digest: XXH3 is not in Python's library.
"""

import pathlib
import struct
import sys

TILE = 65536
BLOCK = 512
BITS = {0: 32, 1: 16, 2: 8, 3: 4, 4: 2, 5: 1}
MASK64 = 2**64 - 1


def f32(x):
    """x rounded to the nearest float."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


class Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        assert self.at + count <= len(self.data), "truncated"
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]

    def varint(self):
        value = 0
        for shift in (0, 7, 14):
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise AssertionError("varint too long")

    def end(self):
        assert self.at == len(self.data), "bytes after the end"


def read_bits(reader, count):
    """A bit string as one number, its first bit the lowest."""
    bits = int.from_bytes(reader.take((count + 7) // 8), "little")
    assert bits >> count == 0, "padding"
    return bits


def bits_from_low(data):
    """The bits of a byte string, the lowest of the first byte first."""
    return [byte >> i & 1 for byte in data for i in range(8)]


def read_block(reader, form, count):
    bits = BITS[form]
    lo = reader.number("H")
    hi = lo if bits == 1 else reader.number("H")
    assert lo <= hi < 0x7F80, "grid"
    top = 2 ** (bits - 1) - 1
    low = bf16(lo)
    step = f32(f32(bf16(hi) - low) / top) if top else 0.0
    codes = read_bits(reader, count * bits)
    values = []
    for i in range(count):
        code = codes >> (i * bits) & (2**bits - 1)
        magnitude = f32(low + f32(step * (code & top)))
        values.append(-magnitude if code > top else magnitude)
    return values


def read_values(reader, form, count):
    if form == 0:
        values = list(struct.unpack(f"<{count}f", reader.take(4 * count)))
    elif form == 1:
        values = [bf16(h) for h in struct.unpack(f"<{count}H", reader.take(2 * count))]
    else:
        values = []
        for first in range(0, count, BLOCK):
            values += read_block(reader, form, min(BLOCK, count - first))
    assert all(abs(v) < float("inf") for v in values), "not finite"
    return values


def read_positions(reader, limit):
    count = reader.varint()
    assert count <= limit
    if count == 0:
        return []
    rice = reader.number("B")
    assert rice <= 16
    unary_bytes = reader.varint()
    low = read_bits(reader, count * rice)
    unary = bits_from_low(reader.take(unary_bytes))
    ends = [i for i, bit in enumerate(unary) if bit]
    assert len(ends) == count and ends[-1] // 8 + 1 == unary_bytes
    positions, before, position = [], -1, -1
    for i, end in enumerate(ends):
        gap = (end - before - 1 << rice) + (low >> (i * rice) & (2**rice - 1))
        position += gap + 1
        positions.append(position)
        before = end
    assert position < limit
    return positions


def mixed(x):
    x = x + 0x9E3779B97F4A7C15 & MASK64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK64
    return x ^ x >> 31


def scaled(x, limit):
    return (x >> 32) * limit >> 32


def drawn(seed, per_tile, tile, size):
    count = (per_tile * size + TILE - 1) // TILE
    tile_seed = mixed(seed ^ mixed(tile))
    rotation = scaled(mixed(tile_seed), size)
    positions = []
    for j in range(count):
        begin = j * size // count
        width = (j + 1) * size // count - begin
        positions.append((rotation + begin + scaled(mixed(tile_seed + 1 + j & MASK64), width)) % size)
    return sorted(positions)


def tiles_of(elements):
    return [(begin, min(TILE, elements - begin)) for begin in range(0, elements, TILE)]


def decode_dense(reader, form, elements):
    return dict(enumerate(read_values(reader, form, elements)))


def decode_sparse(reader, form, elements):
    out = {}
    for begin, size in tiles_of(elements):
        positions = read_positions(reader, size)
        out.update(zip((begin + p for p in positions), read_values(reader, form, len(positions))))
    return out


def read_subset(reader):
    seed, per_tile = reader.number("Q"), reader.number("I")
    assert 1 <= per_tile <= TILE
    return seed, per_tile


def decode_random(reader, form, elements):
    seed, per_tile = read_subset(reader)
    out = {}
    for tile, (begin, size) in enumerate(tiles_of(elements)):
        positions = drawn(seed, per_tile, tile, size)
        out.update(zip((begin + p for p in positions), read_values(reader, form, len(positions))))
    return out


def decode_random_sparse(reader, form, elements):
    seed, per_tile = read_subset(reader)
    out = {}
    for tile, (begin, size) in enumerate(tiles_of(elements)):
        subset = drawn(seed, per_tile, tile, size)
        ranks = read_positions(reader, len(subset))
        out.update(zip((begin + subset[r] for r in ranks), read_values(reader, form, len(ranks))))
    return out


def product(left, right, rows, columns, rank):
    out = []
    for row in range(rows):
        for column in range(columns):
            total = 0.0
            for r in range(rank):
                total = f32(total + f32(left[r * rows + row] * right[r * columns + column]))
            out.append(total)
    return out


def decode_low_rank(reader, form, elements):
    assert form in (0, 1)
    shapes = [tuple(reader.number("I") for _ in range(3)) for _ in range(reader.number("I"))]
    counts = [rows * columns if rank == 0 else (rows + columns) * rank for rows, columns, rank in shapes]
    values = read_values(reader, form, sum(counts))
    out = []
    for (rows, columns, rank), count in zip(shapes, counts):
        assert rows > 0 and columns > 0 and rank <= min(rows, columns)
        part, values = values[:count], values[count:]
        out += product(part[: rows * rank], part[rows * rank :], rows, columns, rank) if rank else part
    assert len(out) == elements
    return dict(enumerate(out))


KINDS = {1: decode_dense, 2: decode_sparse, 3: decode_random, 4: decode_random_sparse, 5: decode_low_rank}


def decode(payload):
    """{index: value} of the elements that a payload names."""
    header = Reader(payload)
    assert header.take(4) == b"HLUP", "magic"
    version, kind, form, reserved = (header.number("B") for _ in range(4))
    assert version == 1 and form in BITS and reserved == 0
    elements, body_bytes, _digest = (header.number("Q") for _ in range(3))
    assert body_bytes == len(payload) - 32
    body = Reader(payload[32:])
    values = KINDS[kind](body, form, elements)
    body.end()
    return values


def lines_of(values):
    bits = ((i, struct.unpack("<I", struct.pack("<f", v))[0]) for i, v in sorted(values.items()) if v != 0)
    return "".join(f"{i} {b:08x}\n" for i, b in bits)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: wire_format_reference.py DIRECTORY")
    payloads = sorted(pathlib.Path(sys.argv[1]).glob("*.bin"))
    wrong = [p.name for p in payloads if lines_of(decode(p.read_bytes())) != p.with_suffix(".values").read_text()]
    if wrong or not payloads:
        sys.exit(f"{len(payloads)} payloads, of which decode to other values: {', '.join(wrong)}")
    print(f"{len(payloads)} payloads decode to the recorded values")


if __name__ == "__main__":
    main()
