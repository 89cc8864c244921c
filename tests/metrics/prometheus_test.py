# SPDX-License-Identifier: Apache-2.0
"""A Prometheus that scrapes an agent and a relay: sums over all pages count each event once, the chart's alerts fire, and
its dashboard asks for what there is."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
EXPORTERS = pathlib.Path(os.environ["WEFT_BUILD"]) / "tests" / "metrics" / "metrics_exporters"
CHART = TOP / "charts" / "weft"
DASHBOARD = json.loads((CHART / "files" / "dashboard.json").read_text(encoding="utf-8"))
PATIENCE = 120  # seconds until the first scrape is answered, on a busy machine

CONFIG = """
global: {{scrape_interval: 250ms, evaluation_interval: 250ms}}
rule_files: ["{rules}"]
scrape_configs:
- {{job_name: agent, static_configs: [{{targets: ["127.0.0.1:{agent}"]}}]}}
- {{job_name: relay, static_configs: [{{targets: ["127.0.0.1:{relay}"]}}]}}
"""


def end(process):
    process.terminate()
    process.wait()


class Sums(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = shutil.which("prometheus")
        if program is None:
            raise AssertionError("there is no program prometheus: ./dev setup test installs it")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-prometheus-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        exporters = subprocess.Popen([EXPORTERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(exporters.stdout.close)
        cls.addClassCleanup(exporters.wait)
        cls.addClassCleanup(exporters.stdin.close)
        _, agent, _, relay = exporters.stdout.readline().split()
        (cls.folder / "prometheus.yml").write_text(CONFIG.format(
            agent=agent, relay=relay, rules=CHART / "files" / "alerts.yaml"), encoding="utf-8")
        cls.start_prometheus(program)

    @classmethod
    def start_prometheus(cls, program):
        """Starts Prometheus, which does not print the port it took: it gets a free one, and
        another if it loses that one."""
        deadline = time.monotonic() + PATIENCE
        log = cls.folder / "log"
        while time.monotonic() < deadline:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                cls.address = f"127.0.0.1:{free.getsockname()[1]}"
            with open(log, "w", encoding="utf-8") as output:
                process = subprocess.Popen(
                    [program, f"--config.file={cls.folder}/prometheus.yml", f"--storage.tsdb.path={cls.folder}/data",
                     f"--web.listen-address={cls.address}"], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            while process.poll() is None and time.monotonic() < deadline:
                if cls.is_scraped():
                    cls.addClassCleanup(end, process)
                    return
                time.sleep(0.1)
            end(process)
        raise AssertionError("Prometheus does not scrape:\n" + log.read_text(encoding="utf-8"))

    @classmethod
    def is_scraped(cls):
        try:
            return cls.query("sum by (job) (up)", "job") == {"agent": 1, "relay": 1}
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    @classmethod
    def ask(cls, what):
        with urllib.request.urlopen(f"http://{cls.address}/api/v1/{what}", timeout=PATIENCE) as response:
            return json.load(response)["data"]

    @classmethod
    def query(cls, expression, label):
        """Returns the result of an instant query: value of `label` -> value of the sample."""
        samples = cls.ask("query?" + urllib.parse.urlencode({"query": expression}))["result"]
        return {sample["metric"].get(label, ""): float(sample["value"][1]) for sample in samples}

    def test_sums_by_trace_count_each_event_once(self):
        for name, expected in {
                "weft_events_recorded_total": {"orders": 1000, "payments": 50},
                "weft_events_discarded_total": {"orders": 123, "payments": 7},
                "weft_events_lost_total": {"orders": 20},
                "weft_events_overwritten_total": {"orders": 10, "payments": 0},
                "weft_events_delivered_total": {"orders": 970, "payments": 50},
                "weft_streams_tail_unknown_total": {"orders": 0, "payments": 2},
                "weft_kernel_hits_missed_total": {"orders": 0, "payments": 9}}.items():
            with self.subTest(name):
                self.assertEqual(self.query(f"sum by (trace) ({name})", "trace"), expected)

    def test_recorded_events_are_delivered_overwritten_or_lost(self):
        # The expression covers the pages of both programs. A Trace that lost nothing has no sample
        # for it.
        self.assertEqual(
            self.query("sum by (trace) (weft_events_recorded_total)"
                       " - sum by (trace) ({__name__=~'weft_events_(delivered|overwritten|lost)_total'})", "trace"),
            {"orders": 0, "payments": 0})

    def test_a_relay_repeats_reports_under_names_of_its_own(self):
        self.assertEqual(self.query("sum by (trace) (weft_relay_reported_discarded_total)", "trace"),
                         {"orders": 123, "payments": 7})
        self.assertEqual(self.query("sum by (stage) (weft_relay_reported_lost_total)", "stage"),
                         {"consumer": 15, "relay": 5})

    def test_no_name_is_exported_by_two_programs(self):
        pages = "count by (__name__) (count by (__name__, job) ({__name__=~'weft_.*'}))"
        exporters = self.query(pages, "__name__")
        self.assertGreater(len(exporters), 10)
        self.assertEqual({name for name, count in exporters.items() if count > 1}, set())

    def test_every_exported_name_is_documented(self):
        page = (TOP / "docs" / "metrics.md").read_text(encoding="utf-8")
        names = self.query("count by (__name__) ({__name__=~'weft_.*'})", "__name__")
        self.assertEqual([name for name in names if f"| `{name}` |" not in page], [])


    def test_each_loss_fires_an_alert(self):
        expected = {
            ("WeftEventsDiscarded", "orders", "full"), ("WeftEventsDiscarded", "orders", "too_large"),
            ("WeftEventsDiscarded", "payments", "memory"), ("WeftEventsLost", "orders", "corrupt"),
            ("WeftEventsLost", "orders", "unreachable"), ("WeftRingsUnknown", "payments", None),
            ("WeftKernelHitsMissed", "payments", None)}
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            alerts = [alert for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"]
            if len(alerts) >= len(expected):
                break
            time.sleep(0.1)
        labels = [alert["labels"] for alert in alerts]
        self.assertEqual({(each["alertname"], each["trace"], each.get("reason")) for each in labels}, expected)
        self.assertIn("Trace shop/orders loses events (relay/unreachable)",
                      [alert["annotations"]["summary"] for alert in alerts])

    def test_rules_are_whole(self):
        groups = self.ask("rules")["groups"]
        self.assertEqual([group["name"] for group in groups], ["weft"])
        for rule in groups[0]["rules"]:
            self.assertEqual(rule["health"], "ok", rule)
            self.assertTrue({"summary", "description"} <= rule["annotations"].keys(), rule["name"])
            self.assert_known(rule["query"])

    def assert_known(self, expression):
        page = (TOP / "docs" / "metrics.md").read_text(encoding="utf-8")
        for name in re.findall(r"\bweft_\w+", expression):
            self.assertIn(f"| `{name}` |", page)

    def test_the_dashboard_asks_for_existing_metrics(self):
        variables = {"$namespace": ".*", "$trace": ".*", "$__rate_interval": "1m"}
        for panel in DASHBOARD["panels"]:
            for target in panel["targets"]:
                expression = target["expr"]
                self.assert_known(expression)
                for name, value in variables.items():
                    expression = expression.replace(name, value)
                self.assertNotIn("$", expression)
                self.query(expression, "trace")  # an error is an exception
        for variable in DASHBOARD["templating"]["list"]:
            self.assert_known(variable["query"]["query"] if variable["type"] == "query" else "")


class Dashboard(unittest.TestCase):
    """Checks what Grafana needs of a dashboard."""

    def test_panels_fill_a_grid_of_24_columns(self):
        taken = set()
        for panel in DASHBOARD["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells
        self.assertEqual(taken, {(x, y) for x in range(24) for y in range(max(y for _, y in taken) + 1)})

    def test_panels_are_whole(self):
        ids = [panel["id"] for panel in DASHBOARD["panels"]]
        self.assertEqual(len(set(ids)), len(ids))
        for panel in DASHBOARD["panels"]:
            self.assertIn(panel["type"], ("stat", "timeseries"))
            self.assertTrue(panel["title"] and panel["description"])
            for target in panel["targets"]:
                self.assertEqual(target["datasource"], {"type": "prometheus", "uid": "${datasource}"})
            references = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(set(references)), len(references))
        self.assertEqual([each["name"] for each in DASHBOARD["templating"]["list"]], ["datasource", "namespace", "trace"])

    def test_variables_have_members_of_grafanas_schema_only(self):
        """VariableModel of @grafana/schema 11, against which the whole dashboard was checked."""
        for variable in DASHBOARD["templating"]["list"]:
            self.assertLessEqual(set(variable), {"name", "label", "type", "datasource", "query", "refresh", "sort",
                                                 "includeAll", "multi", "allValue", "current"})
            self.assertIn(set(variable.get("current", {})), ({"text", "value"}, set()))
            self.assertNotEqual(variable.get("current"), {})


if __name__ == "__main__":
    unittest.main()
