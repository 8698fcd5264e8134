# SPDX-License-Identifier: MIT
"""Takes a GGUF file apart and puts it together again with changes, for tests of bad files. Python's own library only."""
import struct

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY, UINT32 = 8, 9, 4


class Gguf:
    def __init__(self, path):
        self.bytes = path.read_bytes()
        self.at = 4
        self.version = self.take("<I")
        n_tensor, n_kv = self.take("<Q"), self.take("<Q")
        self.kv = {}  # name: (type, raw bytes of the value)
        for _ in range(n_kv):
            name, kind, start = self.string(), self.take("<I"), self.at
            self.skip(kind)
            self.kv[name] = (kind, self.bytes[start:self.at])
        self.tensors = []  # [name, dims, type, offset]
        for _ in range(n_tensor):
            name = self.string()
            dims = [self.take("<Q") for _ in range(self.take("<I"))]
            self.tensors.append([name, dims, self.take("<I"), self.take("<Q")])
        self.header_bytes = self.at
        self.align = struct.unpack("<I", self.kv["general.alignment"][1])[0] if "general.alignment" in self.kv else 32
        self.data = self.bytes[-(-self.at // self.align) * self.align:]

    def take(self, form):
        value = struct.unpack_from(form, self.bytes, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def string(self):
        n = self.take("<Q")
        self.at += n
        return self.bytes[self.at - n:self.at].decode()

    def skip(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            inner, n = self.take("<I"), self.take("<Q")
            for _ in range(n):
                self.skip(inner)
        else:
            self.at += SIZES[kind]

    def set_string(self, name, value):
        value = value.encode()
        self.kv[name] = (STRING, struct.pack("<Q", len(value)) + value)

    def set_uint32(self, name, value):
        self.kv[name] = (UINT32, struct.pack("<I", value))

    def write(self, path):
        def text(s):
            return struct.pack("<Q", len(s.encode())) + s.encode()

        out = b"GGUF" + struct.pack("<IQQ", self.version, len(self.tensors), len(self.kv))
        for name, (kind, raw) in self.kv.items():
            out += text(name) + struct.pack("<I", kind) + raw
        for name, dims, kind, offset in self.tensors:
            out += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
        out += b"\0" * (-len(out) % self.align) + self.data
        path.write_bytes(out)
        return path
