"""What the Kaitai description leaves to a program: undoing codec and filter. Written from spec.md, section Codecs."""

import zstandard


def lz4(data, size):
    """One LZ4 block."""
    out = bytearray()
    at = 0

    def long(nibble):
        nonlocal at
        length = nibble
        while nibble == 15:
            length += data[at]
            at += 1
            if data[at - 1] != 255:
                break
        return length

    while at < len(data):
        token = data[at]
        at += 1
        literals = long(token >> 4)
        out += data[at : at + literals]
        at += literals
        if at >= len(data):
            break
        offset = int.from_bytes(data[at : at + 2], "little")
        at += 2
        assert 0 < offset <= len(out)
        for _ in range(long(token & 15) + 4):
            out.append(out[-offset])
    assert len(out) == size
    return bytes(out)


def zstd(data):
    """Zstandard frames, one behind the other."""
    out = b""
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        out += frame.decompress(data)
        data = frame.unused_data
    return out


def unfilter(body, order, size_long):
    """Records from planes of bytes, times from differences."""
    count = int.from_bytes(body[40:44], order)
    start = int.from_bytes(body[68:72], order)
    stride = 8 + size_long
    planes = body[start : start + count * stride]
    out = bytearray()
    time = 0
    for i in range(count):
        record = bytes(planes[k * count + i] for k in range(stride))
        time = (time + int.from_bytes(record[:4], order)) & 0xFFFFFFFF
        out += time.to_bytes(4, order) + record[4:]
    return body[:start] + bytes(out) + body[start + count * stride :]


class KmtBody:
    """The process that kmt.ksy names."""

    def __init__(self, codec, prefix_len, raw_len, is_big, size_long):
        self.codec, self.filter = codec & 15, codec >> 4
        self.prefix_len, self.raw_len, self.size_long = prefix_len, raw_len, size_long
        self.order = "big" if is_big else "little"

    def decode(self, stored):
        prefix, rest = stored[: self.prefix_len], stored[self.prefix_len :]
        size = self.raw_len - self.prefix_len
        if self.codec == 1:
            rest = lz4(rest, size)
        elif self.codec == 2:
            rest = zstd(rest)
        else:
            assert self.codec == 0, f"codec {self.codec}"
        body = bytes(prefix) + bytes(rest)
        assert len(body) == self.raw_len
        return unfilter(body, self.order, self.size_long) if self.filter == 1 else body
