# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own schema of its traces, from its Python package, which is installed into an environment of our own in a
cache. As a program, run by that environment's Python: prints as JSON what the trace in the file argv[1] holds."""

import collections
import json
import os
import pathlib
import subprocess
import sys

PINNED = {"perfetto": "0.59.1", "protobuf": "7.36.2"}
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "weft"


def python():
    """The Python that has the schema; None where it cannot be had."""
    folder = CACHE / ("perfetto-" + "-".join(PINNED.values()))
    found = folder / "bin" / "python3"
    works = [found, "-c", "from perfetto.protos.perfetto.trace import perfetto_trace_pb2"]
    if found.exists() and subprocess.run(works, check=False, capture_output=True).returncode == 0:
        return found
    packages = [f"{name}=={version}" for name, version in PINNED.items()]
    for command in ([sys.executable, "-m", "venv", "--clear", folder],
                    [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *packages], works):
        if subprocess.run(command, check=False, capture_output=True).returncode != 0:
            return None
    return found


def read(path):
    """What python() says of a trace."""
    return json.loads(subprocess.run([python(), __file__, path], check=True, capture_output=True, text=True).stdout)


def value_of(annotation):
    field = annotation.WhichOneof("value")
    value = getattr(annotation, field)
    return json.loads(value) if field == "legacy_json_value" else value


def contents(path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema  # pylint: disable=import-outside-toplevel
    from google.protobuf.unknown_fields import UnknownFieldSet  # pylint: disable=import-outside-toplevel
    trace = schema.Trace()
    trace.ParseFromString(pathlib.Path(path).read_bytes())
    events, fields, tracks, counts, unknown = {}, {}, {}, collections.Counter(), 0
    found = []
    for packet in trace.packet:
        unknown += len(UnknownFieldSet(packet)) + len(UnknownFieldSet(packet.track_event))
        counts[packet.WhichOneof("data")] += 1
        events |= {name.iid: name.name for name in packet.interned_data.event_names}
        fields |= {name.iid: name.name for name in packet.interned_data.debug_annotation_names}
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            tracks[track.uuid] = (tracks[track.parent_uuid] + "; " if track.parent_uuid else "") + track.name
        if packet.HasField("track_event"):
            event = packet.track_event
            found.append({"time": packet.timestamp, "type": schema.TrackEvent.Type.Name(event.type),
                          "track": tracks[event.track_uuid],
                          "name": events[event.name_iid] if event.name_iid else event.name,
                          "fields": {fields[a.name_iid]: value_of(a) for a in event.debug_annotations}})
    return {"unknown": unknown, "packets": counts, "events": found}


if __name__ == "__main__":
    json.dump(contents(sys.argv[1]), sys.stdout)
