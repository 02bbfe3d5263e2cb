#!/usr/bin/env python3
"""Reads the golden file of a state with struct and json alone, as the description of safetensors has it.

safetensors_reference.py FILE compares with what tests/base/state_test.cpp puts into it.
"""

import json
import pathlib
import struct
import sys


def f32(x):
    """x rounded to the nearest float."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


BEGIN = b'{"__metadata__":{"longhaul_format":"2","longhaul_xxh3":"'


def read(data):
    (length,) = struct.unpack_from("<Q", data)
    assert data[8:].startswith(BEGIN), "as docs/file_formats.md has it"
    assert data[64:80].decode() == json.loads(data[8 : 8 + length])["__metadata__"]["longhaul_xxh3"]
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    metadata = header.pop("__metadata__")
    assert all(isinstance(text, str) for text in metadata.values())
    tensors = {}
    covered = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        assert begin == covered, "a gap or an overlap"
        covered = end
        form, size = {"F32": ("f", 4), "U8": ("B", 1)}[entry["dtype"]]
        (count,) = entry["shape"]
        assert end - begin == size * count
        tensors[name] = list(struct.unpack_from(f"<{count}{form}", body, begin))
    assert covered == len(body)
    return tensors, metadata


def main():
    tensors, metadata = read(pathlib.Path(sys.argv[1]).read_bytes())
    assert tensors == {
        "shared": [f32(x) for x in (1.0, -2.5, 1e-40, 0.1)],
        "residual": [],
        "message.7": [0, 255, ord("{")],
        "nothing": [],
    }, tensors
    values = json.loads(metadata["longhaul"])
    assert values == {"step": 12, "keep_ratio": 0.1, "merge": 'late "δ"', "rounds": [7, 8]}, values


if __name__ == "__main__":
    main()
