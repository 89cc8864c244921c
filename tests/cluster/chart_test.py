#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""charts/weft as users install it, with its defaults: what it starts becomes ready, and goes again."""

import unittest

from tests.cluster.weft_cluster import ClusterTest, PARTS, PATIENCE, TOP, dev, kubectl

CHART = TOP / "charts/weft"
SYSTEM = "weft-system"


def helm(*words, **more):
    return dev("cluster", "helm", *words, "--namespace", SYSTEM, **more)


class Chart(ClusterTest):
    LOADED = ("weft-agent", "weft-controller", "weft-webhook", "weft-relay")

    def test_install_and_uninstall(self):
        helm("install", "weft", CHART, "--create-namespace")
        for workload in PARTS:
            done = kubectl("-n", SYSTEM, "rollout", "status", workload,
                           f"--timeout={PATIENCE:.0f}s", check=False)
            if done.returncode != 0:
                self.fail(done.stderr + kubectl("-n", SYSTEM, "describe", "pods").stdout)
        self.assertIn("weft_", kubectl("get", "--raw", f"/api/v1/namespaces/{SYSTEM}/pods/"
                                       "weft-relay-0:8080/proxy/metrics").stdout)
        helm("uninstall", "weft", "--wait", f"--timeout={PATIENCE:.0f}s")
        # Helm waits for what it made; pods, which others made for it, end some time after.
        self.wait_for(lambda: not kubectl("-n", SYSTEM, "get", "all", "--output=name").stdout,
                      "something of weft stays")
        # What people made stays: definitions, and with them their Traces.
        self.assertIn("traces.weft.dev", kubectl("get", "crds", "--output=name").stdout)

    def test_wrong_value_is_refused_by_name(self):
        done = helm("template", "weft", CHART, "--set", "relay.replica=1", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("replica", done.stderr)


if __name__ == "__main__":
    unittest.main()
