# SPDX-License-Identifier: Apache-2.0
"""What is in the relay's folders, read without weft: packets' headers, and events by babeltrace2."""

import collections
import pathlib
import re
import struct
import subprocess
import typing

from tests.cluster import settings
from tests.cluster.weft_cluster import get

# Header of a packet in LTTng's layout, little-endian: magic, UUID, stream, instance; begin, end, content and packet
# size in bits, sequence, events discarded so far, CPU.
PACKET = struct.Struct("<I16sIQ QQQQQQI")
MAGIC = 0xC1FC1FC1


def relay_folder():
    """The data folder of the relay's pod; its volume is a folder of this machine, persistent or the pod's own."""
    pod = get("weft", "pod", "weft-relay-0")
    for volume in pod["spec"]["volumes"]:
        if claim := volume.get("persistentVolumeClaim"):
            name = get("weft", "persistentvolumeclaim", claim["claimName"])["spec"]["volumeName"]
            return pathlib.Path(get("weft", "persistentvolume", name)["spec"]["local"]["path"])
    return (settings.STATE / "node1/kubelet/pods" / pod["metadata"]["uid"] /
            "volumes/kubernetes.io~empty-dir/data")


def trace_folder(namespace, name):
    """The folder of a Trace's events at the relay, as the Trace's status names it."""
    return relay_folder() / get(namespace, "trace", name)["status"]["folder"]


class Packet(typing.NamedTuple):
    number: int
    discarded: int  # events of the stream so far
    has_events: bool
    end: int        # its place in the file behind it


def packets(file):
    """The packets of a stream's file. If the file still grows, its end may hold a part of the next packet."""
    data = file.read_bytes()
    at = 0
    while at + PACKET.size <= len(data):
        fields = PACKET.unpack_from(data, at)
        if fields[0] != MAGIC or fields[7] == 0:
            raise AssertionError(f"{file}: no packet at {at}")
        at += fields[7] // 8
        yield Packet(fields[8], fields[9], fields[6] > 8 * PACKET.size, at)


def has_events(file):
    return any(packet.has_events for packet in packets(file))


class StreamBook(typing.NamedTuple):
    """What is known of a stream."""
    packets: int
    events: int


def stream_books(folder):
    """Stream -> what the relay counted of it, for the streams below a folder of a Trace that ended: at its end, the relay
    begins an empty chunk for each, whose name tells how many packets and events the chunks before it have."""
    books = {}
    for file in pathlib.Path(folder).rglob("user_*"):
        stream, *numbers = file.name.split(".")
        if file.stat().st_size == 0:
            books[file.parent / stream] = StreamBook(*map(int, numbers or ("0", "0")))
    return books


def stored_books(folder):
    """Stream -> what its files have, and all events as work_in() yields them. The packets must be complete."""
    packets_of, events_of, works = collections.defaultdict(list), collections.Counter(), []
    for file in pathlib.Path(folder).rglob("user_*"):
        packets_of[file.parent / file.name.partition(".")[0]] += (packet.number for packet in packets(file))
    for metadata in pathlib.Path(folder).rglob("metadata"):
        for line in lines_in(metadata.parent):
            cpu = re.search(r"cpu_id = (\d+)", line).group(1)
            events_of[metadata.parent / f"user_{cpu}"] += 1
            works.append(work_of(line))
    for stream, numbers in packets_of.items():
        if sorted(numbers) != list(range(len(numbers))):
            raise AssertionError(f"{stream}: packets are missing")
    return {stream: StreamBook(len(numbers), events_of[stream]) for stream, numbers in packets_of.items()}, works


def discarded_in(folder):
    """Sum of what the streams below a folder say was discarded; their packets must be complete, in one or several
    chunks (user_0, user_0.SEQ.EVENTS)."""
    streams = collections.defaultdict(list)
    for file in pathlib.Path(folder).rglob("user_*"):
        found = list(packets(file))
        if found and found[-1].end != file.stat().st_size:
            raise AssertionError(f"{file}: packets are missing")
        streams[file.parent, file.name.partition(".")[0]] += found
    for stream, found in streams.items():
        if sorted(packet.number for packet in found) != list(range(len(found))):
            raise AssertionError(f"{stream}: packets are missing")
    return sum(max((packet.discarded for packet in found), default=0) for found in streams.values())


def lines_in(folder):
    """The lines that babeltrace2 prints of what is below a folder, one for each event."""
    # On standard error it says what was discarded, for every packet.
    with subprocess.Popen(["babeltrace2", "--no-delta", str(folder)], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as reader:
        yield from reader.stdout
    if reader.returncode != 0:
        raise AssertionError(f"babeltrace2 {folder}: {reader.returncode}")


WORK = re.compile(r"tenant:work: .*thread = (\d+), number = (\d+)")


def work_of(line):
    """Thread and number of an event, if it is a tenant:work, else None."""
    found = WORK.search(line)
    return (int(found.group(1)), int(found.group(2))) if found else None


def work_in(folder):
    """What work_of() returns of each event below a folder."""
    return map(work_of, lines_in(folder))


def numbers_and_others(works):
    """Thread -> the numbers of its events tenant:work, sorted; and how many other events there are."""
    numbers, others = {}, 0
    for work in works:
        if work is None:
            others += 1
        else:
            numbers.setdefault(work[0], []).append(work[1])
    return {thread: sorted(found) for thread, found in numbers.items()}, others


def numbers_and_others_in(folder):
    """As numbers_and_others(), of the events below a folder."""
    return numbers_and_others(work_in(folder))


def numbers_in(folder):
    """Thread -> the numbers of its events tenant:work below a folder, sorted."""
    return numbers_and_others_in(folder)[0]


def events_in(folder):
    """Event name -> how many babeltrace2 reads below a folder."""
    counts = {}
    pattern = re.compile(r"\b((?:shop|tenant|function):\w+):")
    for line in lines_in(folder):
        name = pattern.search(line).group(1)
        counts[name] = counts.get(name, 0) + 1
    return counts
