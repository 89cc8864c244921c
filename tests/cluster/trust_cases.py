# SPDX-License-Identifier: Apache-2.0
"""Nodes prove themselves to the relay: events of a tenant come over TLS, and a session is refused without a ticket of its
node and namespace, or without a TraceSession. For a class of tests that has weft installed."""

import base64
import json
import re
import sys
import tempfile

from tests.cluster.false_node import SERVER_NAME
from tests.cluster.relay_api import get_url, relay_certificate_authority, token_of
from tests.cluster.relay_files import events_in, relay_folder
from tests.cluster.weft_cluster import TOP, dev, get, kubectl, pod
from tests.cluster.with_weft import trace

REFUSED = re.compile(r'^weft_relay_refused_sessions_total\{reason="(\w+)"\} (\S+)$', re.MULTILINE)


def relay_address():
    return get("weft", "pod", "weft-relay-0")["status"]["podIP"]


def agent_token(*flags):
    """A token as the kubelet gives it to the agent's pod."""
    name = get("weft", "pods", "-l", "app.kubernetes.io/component=agent")["items"][0]["metadata"]["name"]
    return kubectl("-n", "weft", "create", "token", "weft-agent", "--audience=weft-relay",
                   "--bound-object-kind=Pod", f"--bound-object-name={name}", *flags).stdout.strip()


def ask_ticket(token, namespace):
    """What the relay's API answers to a node that wants a ticket."""
    with tempfile.NamedTemporaryFile(prefix="weft-ca-") as authority:
        authority.write(relay_certificate_authority())
        authority.flush()
        return get_url(f"https://{SERVER_NAME}:4463/v1/tickets/{namespace}", {"Authorization": "Bearer " + token},
                       "--cacert", authority.name, "--resolve", f"{SERVER_NAME}:4463:{relay_address()}")


def say_hello(node, namespace, trace, uid, ticket):
    """Says hello as a node; the type of the relay's last answer, and its reason."""
    hello = {"type": "hello", "node": node, "namespace": namespace, "trace": trace, "trace_uid": uid, "ticket": ticket}
    asked = {"address": relay_address(), "authority": relay_certificate_authority().decode(), "hello": hello}
    text = base64.b64encode(json.dumps(asked).encode()).decode()
    done = dev("cluster", "run", sys.executable, "-B", TOP / "tests/cluster/false_node.py", text)
    answer = json.loads(done.stdout)
    return answer["type"], answer.get("reason", "")


class TrustCases:
    """To be mixed into a WeftTest."""

    def refused(self):
        """Refused sessions, by reason."""
        return {reason: float(count) for reason, count in REFUSED.findall(self.metrics("relay"))}

    def assert_refused(self, reason, *hello):
        before = self.refused().get(reason, 0)
        answer, why = say_hello(*hello)
        self.assertEqual(answer, "refusal", why)
        self.assertTrue(why)
        # Another node's session may be refused meanwhile, such as one of a namespace that goes.
        self.assertGreater(self.refused().get(reason, 0), before)

    def test_only_a_node_with_a_ticket_for_it_writes_a_trace(self):
        for namespace in ("trusted", "foreign"):
            self.injected_namespace(namespace)
            self.apply(pod("tenant", "tenant", labels={"app": "tenant"}, args=["--events", "2000", "--threads", "2"]),
                       trace("t", "tenant", user={"events": [{"name": "tenant:*"}]}), namespace=namespace)
        for namespace in ("trusted", "foreign"):
            self.wait_for_pod(namespace, "tenant")
            self.wait_ready(namespace, "t", traced=1)
        emitted = self.run_tenant("trusted")
        node = get("trusted", "pod", "tenant")["spec"]["nodeName"]
        uid = get("trusted", "trace", "t")["metadata"]["uid"]
        ticket = ask_ticket(agent_token(), "trusted").json()
        self.assertEqual(ticket["node"], node)
        good = ticket["ticket"]

        with self.subTest("tokens that prove no node"):
            self.assertEqual(ask_ticket("no-token", "trusted").status, 401)
            self.assertEqual(ask_ticket(token_of("weft", "weft-agent", "--audience=weft-relay"), "trusted").status, 403)
            self.assertEqual(ask_ticket(token_of("weft", "weft-relay", "--audience=weft-relay"), "trusted").status, 403)
            self.assertEqual(ask_ticket(token_of("weft", "weft-agent"), "trusted").status, 401)
        with self.subTest("tickets that do not fit"):
            foreign = ask_ticket(agent_token(), "foreign").json()["ticket"]
            self.assert_refused("no_ticket", node, "trusted", "t", uid, "")
            self.assert_refused("wrong_ticket", node, "trusted", "t", uid, foreign)
            self.assert_refused("wrong_ticket", "another-node", "trusted", "t", uid, good)
            self.assert_refused("wrong_ticket", node, "trusted", "t", uid, "9" + good)
        with self.subTest("Traces that the node does not record"):
            self.assert_refused("no_session", node, "trusted", "guessed", uid, good)
            self.assert_refused("no_session", node, "trusted", "t", "00000000-0000-0000-0000-000000000000", good)
        with self.subTest("a ticket that fits"):
            self.assertEqual(say_hello(node, "trusted", "t", uid, good)[0], "welcome")

        # That session took the consumer's place for a moment: nothing is lost or twice.
        events = self.end_by_time("trusted", "t")
        self.assertEqual((events["recorded"], events["delivered"], events["lost"]), (emitted, emitted, 0))
        self.assertEqual(sum(events_in(relay_folder() / "trusted" / "t").values()), emitted)
        kubectl("-n", "foreign", "delete", "trace", "t")
