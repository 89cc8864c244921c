# SPDX-License-Identifier: Apache-2.0
"""Traces as other tracers write them: CTF 1.8 metadata and streams, made bit by bit.

Field classes know their TSDL text and how their values lie in a packet. A second encoder beside
lib/ctf, on purpose: it shares nothing with what reads its traces.
"""
import os
import struct

MAGIC = 0xC1FC1FC1
METADATA_MAGIC = 0x75D11D57
UUID = bytes(range(16))


class Bits:
    """The bits of a packet. Big-endian ones fill each byte from its highest bit."""

    def __init__(self, big):
        self.big = big
        self.bits = []

    def align(self, align):
        while len(self.bits) % align:
            self.bits.append(0)

    def put(self, value, size, align, big=None):
        self.align(align)
        order = range(size - 1, -1, -1) if (self.big if big is None else big) else range(size)
        if size % 8 == 0 and len(self.bits) % 8 == 0:
            data = (value & (1 << size) - 1).to_bytes(
                size // 8, "big" if (self.big if big is None else big) else "little")
            self.put_bytes(data)
        else:
            self.bits += [value >> i & 1 for i in order]

    def put_bytes(self, data):
        self.align(8)
        for byte in data:
            self.bits += [byte >> i & 1 for i in (range(7, -1, -1) if self.big else range(8))]

    def data(self, size=None):
        bits = self.bits + [0] * (-len(self.bits) % 8)
        out = bytearray()
        for at in range(0, len(bits), 8):
            group = bits[at:at + 8]
            if not self.big:
                group = group[::-1]
            out.append(sum(bit << (7 - i) for i, bit in enumerate(group)))
        return bytes(out) + bytes((size or 0) - len(out))


class Integer:
    def __init__(self, size, align=None, signed=False, base=10, encoding="none", order=None,
                 clock=None):
        self.size, self.signed, self.base, self.encoding = size, signed, base, encoding
        self.align = align or (8 if size % 8 == 0 else 1)
        self.order, self.clock = order, clock

    def tsdl(self):
        return (f"integer {{ size = {self.size}; align = {self.align}; "
                f"signed = {str(self.signed).lower()}; base = {self.base}; "
                f"encoding = {self.encoding}; "
                + (f"byte_order = {self.order}; " if self.order else "")
                + (f"map = clock.{self.clock}.value; " if self.clock else "") + "}")

    def put(self, bits, value, scope):
        big = None if self.order is None else self.order == "be"
        bits.put(value, self.size, self.align, big)

    def random(self, random):
        value = random.getrandbits(self.size) >> random.randrange(self.size)
        return value - (value >> self.size - 1 << self.size) if self.signed else value


class Enum:
    def __init__(self, integer, mappings):
        self.integer, self.mappings = integer, mappings
        self.align, self.size = integer.align, integer.size

    def tsdl(self):
        labels = []
        for label, begin, end in self.mappings:
            value = "" if begin is None else f" = {begin}" + (f" ... {end}" if end != begin else "")
            labels.append(label + value)
        return f"enum : {self.integer.tsdl()} {{ {', '.join(labels)} }}"

    def put(self, bits, value, scope):
        self.integer.put(bits, value, scope)

    def random(self, random):
        return self.integer.random(random) if random.random() < 0.3 else random.choice(
            [begin or 0 for _, begin, _ in self.mappings])


class Float:
    def __init__(self, size, align=8, order=None):
        self.size, self.align, self.order = size, align, order

    def tsdl(self):
        digits = "exp_dig = 8; mant_dig = 24;" if self.size == 32 else "exp_dig = 11; mant_dig = 53;"
        order = f" byte_order = {self.order};" if self.order else ""
        return f"floating_point {{ {digits} align = {self.align};{order} }}"

    def put(self, bits, value, scope):
        raw = struct.pack(">f" if self.size == 32 else ">d", value)
        big = None if self.order is None else self.order == "be"
        bits.put(int.from_bytes(raw, "big"), self.size, self.align, big)

    def random(self, random):
        return random.choice([0.0, -0.0, 1.5, -3.25, 1e30, 1e-30, float("inf"), float("nan"), 7])


class String:
    align = 8

    def __init__(self, encoding="UTF8"):
        self.encoding = encoding

    def tsdl(self):
        return f"string {{ encoding = {self.encoding}; }}"

    def put(self, bits, value, scope):
        bits.put_bytes(value + b"\0")

    # Never empty: babeltrace2 2.0 shows an earlier text there.
    def random(self, random):
        return random.choice([b"a", b"two words", "gr\u00fc\u00df".encode(), b"q\"'?\\\n\t\x01\x7f"])


class Struct:
    def __init__(self, members, align=1):
        self.members, self.least = members, align

    @property
    def align(self):
        return max([self.least] + [field.align for _, field in self.members])

    def tsdl(self):
        inner = "".join(f"{declaration(field, name)}; " for name, field in self.members)
        return f"struct {{ {inner}}} align({self.least})"

    def put(self, bits, value, scope=None):
        bits.align(self.align)
        scope = {}
        for (name, field), item in zip(self.members, value):
            field.put(bits, item, scope)
            scope[name] = item

    def random(self, random):
        values, scope = [], {}
        for name, field in self.members:
            if isinstance(field, Sequence):
                value = [field.element.random(random) for _ in range(scope[field.length])]
            elif isinstance(field, Variant):
                value = field.choose(scope[field.tag], random)
            elif name.startswith("_len"):
                value = random.randrange(4)
            else:
                value = field.random(random)
            scope[name] = value
            values.append(value)
        return values


class Array:
    def __init__(self, element, length):
        self.element, self.length, self.align = element, length, element.align

    def put(self, bits, value, scope):
        bits.align(self.align)
        for item in value:
            self.element.put(bits, item, scope)

    def random(self, random):
        return [self.element.random(random) for _ in range(self.length)]


class Sequence(Array):
    pass


class Variant:
    """Options are chosen by labels of the enumeration `tag` before it."""
    align = 1

    def __init__(self, tag, enumeration, options):
        self.tag, self.enumeration, self.options = tag, enumeration, options

    def tsdl(self):
        inner = "".join(f"{declaration(field, name)}; " for name, field in self.options)
        return f"variant <{self.tag}> {{ {inner}}}"

    def choose(self, tag, random):
        for label, begin, end in self.enumeration.mappings:
            if begin <= tag <= end:
                return (label, dict(self.options)[label].random(random))
        raise AssertionError("a tag without an option")

    def put(self, bits, value, scope):
        dict(self.options)[value[0]].put(bits, value[1], scope)


def declaration(field, name):
    if isinstance(field, Array):
        length = field.length
        return f"{declaration(field.element, name)}[{length}]"
    return f"{field.tsdl()} {name}"


class Trace:
    """One stream class; what stands in `parts` becomes the metadata."""

    def __init__(self, big, clock=None, header=None, context=None, stream_context=None):
        self.big = big
        self.order = "be" if big else "le"
        clocked = "main" if clock is not None else None
        self.packet_header = Struct([("magic", Integer(32)), ("uuid", Array(Integer(8), 16)),
                                     ("stream_id", Integer(32))])
        self.context = context or Struct(
            [("timestamp_begin", Integer(64, clock=clocked)),
             ("timestamp_end", Integer(64, clock=clocked)), ("content_size", Integer(64)),
             ("packet_size", Integer(64)), ("packet_seq_num", Integer(64)),
             ("events_discarded", Integer(64)), ("cpu_id", Integer(32))])
        self.header = header or Struct([("id", Integer(16)),
                                        ("timestamp", Integer(32, clock=clocked))])
        self.stream_context = stream_context
        self.events = []
        self.parts = [
            "/* CTF 1.8 */\n",
            f"trace {{ major = 1; minor = 8; uuid = \"{uuid_text(UUID)}\"; "
            f"byte_order = {self.order}; packet.header := {self.packet_header.tsdl()}; }};\n"]
        if clock is not None:
            self.parts.append(f"clock {{ name = main; {clock}; }};\n")
        stream = (f"stream {{ id = 0; packet.context := {self.context.tsdl()}; "
                  f"event.header := {self.header.tsdl()}; ")
        if stream_context:
            stream += f"event.context := {stream_context.tsdl()}; "
        self.parts.append(stream + "};\n")

    def add_event(self, name, fields, extra=""):
        number = len(self.events)
        self.events.append(fields)
        self.parts.append(f"event {{ name = \"{name}\"; id = {number}; stream_id = 0; {extra}"
                          f"fields := {fields.tsdl()}; }};\n")
        return number

    def packet(self, events, begin, end, sequence=0, discarded=0, padding=0, cpu=0):
        """Makes a packet. `events`: (id, time, [context,] values)."""
        bits = Bits(self.big)
        self.packet_header.put(bits, [MAGIC, list(UUID), 0])
        start = len(bits.bits)
        self.context.put(bits, [begin, end, 0, 0, sequence, discarded, cpu])
        for event in events:
            number, time = event[0], event[1]
            self.header.put(bits, [number, time & 0xFFFFFFFF])
            if self.stream_context:
                self.stream_context.put(bits, event[2])
            self.events[number].put(bits, event[-1])
        content = len(bits.bits)
        size = (content + 7) // 8 + padding
        fixed = Bits(self.big)
        fixed.bits = bits.bits[:start]
        self.context.put(fixed, [begin, end, content, size * 8, sequence, discarded, cpu])
        bits.bits[:len(fixed.bits)] = fixed.bits
        return bits.data(size)

    def metadata(self):
        return "".join(self.parts).encode()

    def write(self, folder, streams, metadata=None):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "metadata"), "wb") as file:
            file.write(self.metadata() if metadata is None else metadata)
        for name, data in streams.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)


def uuid_text(uuid):
    text = uuid.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def packetized(text, big, size=256):
    """Returns metadata in packets of `size` bytes."""
    head = 37
    out = b""
    for at in range(0, len(text), size - head):
        part = text[at:at + size - head]
        out += struct.pack((">" if big else "<") + "I16sIIIBBBBB", METADATA_MAGIC, UUID, 0,
                           (head + len(part)) * 8, size * 8, 0, 0, 0, 1, 8)
        out += part + bytes(size - head - len(part))
    return out


def random_class(random, depth=0):
    """Returns a field class other than a sequence or a variant, which need a field before them."""
    kind = random.randrange(8 if depth < 3 else 5)
    if kind < 2:
        size = random.choice([random.randrange(1, 65), 8, 16, 32, 64])
        align = random.choice([None, 1, 8, 16, 32])
        # babeltrace2 2.0 shows 0 for hexadecimal values of 61 to 63 bits.
        bases = [2, 8, 10] if 60 < size < 64 else [2, 8, 10, 16]
        return Integer(size, align, random.random() < 0.5, random.choice(bases))
    if kind == 2:
        integer = Integer(random.choice([8, 13, 32]), signed=random.random() < 0.5)
        # One label a value, no gaps between what is chosen: 2.1 writes several labels differently.
        return Enum(integer, [("zero", 0, 0), ("\"some more\"", 1, 5), ("last", 6, 6)])
    if kind == 3:
        return Float(random.choice([32, 64]), random.choice([8, 16, 32]))
    if kind == 4:
        return String(random.choice(["UTF8", "ASCII"]))
    if kind == 5:
        return Array(random_class(random, depth + 1), random.randrange(4))
    return random_struct(random, depth + 1)


def random_struct(random, depth=0):
    members = []
    for i in range(random.randrange(1, 5)):
        choice = random.randrange(6)
        if choice == 0:
            members.append((f"_len{i}", Integer(random.choice([3, 8, 16, 32]))))
            members.append((f"_seq{i}", Sequence(random_class(random, depth + 1), f"_len{i}")))
        elif choice == 1:
            tag = Enum(Integer(8), [("one", 1, 1), ("two", 2, 2), ("many", 3, 255)])
            tag.random = lambda random: random.choice([1, 2, 3])
            members.append((f"_tag{i}", tag))
            options = [(label, random_class(random, depth + 1)) for label, _, _ in tag.mappings]
            members.append((f"_var{i}", Variant(f"_tag{i}", tag, options)))
        else:
            members.append((f"_f{i}", random_class(random, depth)))
    return Struct(members, random.choice([1, 8, 32]))
