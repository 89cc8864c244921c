# SPDX-License-Identifier: Apache-2.0
"""weft export: each format has exactly the events that weft view shows. Perfetto's is read with Perfetto's schema."""

import csv
import json
import subprocess
import unittest

from tests.local import perfetto_schema
from tests.local.weft_local import PATIENCE, WEFT, LocalTest

EVENTS = 500


class Export(LocalTest):
    def export(self, form, *options):
        path = self.folder / f"exported.{form}"
        done = subprocess.run([WEFT, "export", self.folder / "trace", "--to", form, "-o", path, *options],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        return path

    def test_formats_have_the_events(self):
        self.record("-e", "emitter:*", "-c", "vpid", "-c", "vtid", "-c", "procname",
                    program=self.emitter("--threads", 2, "--events", EVENTS))
        shown, _ = self.run_view(self.folder / "trace", "--json")
        events = [json.loads(line) for line in shown.splitlines()]
        self.assertEqual(len(events), 2 * EVENTS)
        self.assertEqual(self.export("jsonl").read_text(), shown)

        with open(self.export("csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(int(row["time_ns"]), int(row["pid"]), int(row["tid"]), row["event"],
                           json.loads(row["fields"])) for row in rows],
                         [(e["time_ns"], e["context"]["vpid"], e["context"]["vtid"], e["event"], e["payload"])
                          for e in events])

        timeline = json.loads(self.export("chrome-json").read_text())["traceEvents"]
        self.assertEqual([e["args"] for e in timeline if e["ph"] == "i"], [e["payload"] for e in events])

        with self.subTest("Perfetto's schema"):
            if perfetto_schema.python() is None:
                self.skipTest("Perfetto's Python package cannot be had")
            trace = perfetto_schema.read(self.export("perfetto", "--counter", "emitter:tick.number"))
            self.assertEqual(trace["unknown"], 0)
            instants = [e for e in trace["events"] if e["type"] == "TYPE_INSTANT"]
            self.assertEqual([(e["time"], e["name"], e["fields"]) for e in instants],
                             [(e["time_ns"], e["event"], e["payload"]) for e in events])
            host, name = events[0]["hostname"], events[0]["context"]["procname"]
            self.assertEqual({e["track"] for e in instants},
                             {f"{host}; {name} ({e['context']['vpid']}); {name} ({e['context']['vtid']})"
                              for e in events})
            self.assertEqual(sum(e["type"] == "TYPE_COUNTER" for e in trace["events"]), len(events))


if __name__ == "__main__":
    unittest.main()
