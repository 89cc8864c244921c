# SPDX-License-Identifier: Apache-2.0
"""Wrong Traces, and what a user is told of each: field, what is wrong, and what to write instead."""

EVENTS = [{"name": "shop:*"}]
EVENT = "must be provider:event, such as shop:order_placed; * stands for any characters, as in shop:*"
DURATION = "must be a number with a unit, such as 10s, 500ms or 1h30m"
KERNEL_NAME = "must be a name of letters, digits, _ . $ and -; * stands for any characters, as in sched_*"
NOTHING = "records nothing: give user.events, user.functions, kernel.tracepoints, kernel.syscalls, " \
          "kernel.probes or kernel.userProbes"
SIZE = "must be a quantity of bytes that is a power of two, 4Ki to 64Mi"
LABEL = "must be the value of a label: letters, digits, - _ and ., at most 63"
IDENTIFIER = "must be letters, digits and _, and begin with a letter or _"


def user(**more):
    return {"user": {"events": EVENTS}, **more}


def event(**rule):
    return {"user": {"events": [rule]}}


def function(**rule):
    return {"user": {"functions": [rule]}}


def probe(**rule):
    return {"kernel": {"probes": [{"name": "p", "symbol": "vfs_read", **rule}]}}


def user_probe(**rule):
    return {"kernel": {"userProbes": [{"name": "p", "object": "/lib/libm.so.6", **rule}]}}


def labels(key="app", **requirement):
    return user(pods={"selector": {"matchExpressions": [{"key": key, **requirement}]}})


LABEL_IN_FULL = "must be at most 63 letters, digits, -, _ and ., beginning and ending with a letter or digit"

# (spec, [(field, a part of what the API server says, what weft's webhook says)]); without the last, both say the one
# text. Where a value has the wrong type, is missing or none of a few, the API server's words are its own. It refuses
# unknown fields before it asks the webhook.
WRONG = [
    ({}, [("spec", NOTHING)]),
    ({"user": None}, [("spec", NOTHING)]),
    ({"user": {"events": None}}, [("spec", NOTHING)]),
    ({"user": {"evnts": EVENTS}}, [("", 'unknown field "spec.user.evnts"')]),
    (user(mode="overwrite"), [("", 'unknown field "spec.mode"')]),
    (user(duration=10), [("spec.duration", DURATION, '"10" has no unit, write "10s" for seconds')]),
    (user(duration="10"), [("spec.duration", DURATION, '"10": not a duration such as 90s, 10m or 1h30m')]),
    (user(duration="ten seconds"), [("spec.duration", DURATION,
       '"ten seconds": not a duration such as 90s, 10m or 1h30m')]),
    (user(duration="9000h"), [("spec.duration", "must be 10ms to 8784h",
       '"9000h" is out of range, valid: 10ms to 8784h')]),
    (event(name="shop"), [("spec.user.events[0].name", EVENT,
       '"shop" matches no event: they are named provider:event, did you mean "shop:*"?')]),
    (event(name=""), [("spec.user.events[0].name", EVENT, '"" must not be empty')]),
    (event(name="shop:[a-z]+"), [("spec.user.events[0].name", EVENT,
       '"shop:[a-z]+" only * is special in a pattern, "[" is not')]),
    (event(name="a:" + 300 * "b"), [("spec.user.events[0].name", "Too long: may not be more than 255",
       f'"a:{58 * "b"}..." must be at most 255 bytes long')]),
    (event(), [("spec.user.events[0].name", "Required value", "missing, but required")]),
    (event(name="a:*", exclude=["a:b", "shop"]), [("spec.user.events[0].exclude[1]", EVENT,
       '"shop" matches no event: they are named provider:event, did you mean "shop:*"?')]),
    (event(name="a:*", exclude=["a:[a-z]+"]), [("spec.user.events[0].exclude[0]", EVENT,
       '"a:[a-z]+" only * is special in a pattern, "[" is not')]),
    (event(name="a:*", logLevel={"atLeast": "inof"}),
     [("spec.user.events[0].logLevel.atLeast", 'supported values: "emerg", "alert"',
       '"inof" is not valid, did you mean "info"?')]),
    (event(name="a:*", logLevel="info"), [("spec.user.events[0].logLevel", "must be of type object",
       'must be a mapping, not "info"')]),
    (function(), [("spec.user.functions[0]", "must have exactly one of name, set")]),
    (function(name="f", set="io"), [("spec.user.functions[0]", "must have exactly one of name, set")]),
    (function(set="io", returns="int32"),
     [("spec.user.functions[0].set", "must be without args and returns, which the set has")]),
    (function(set="heap"), [("spec.user.functions[0].set", 'supported values: "malloc", "pthread"',
       '"heap" is not valid; valid here: malloc, pthread, dl, io, ssl')]),
    (function(name="f", record=["begin"]),
     [("spec.user.functions[0].record[0]", 'supported values: "entry", "exit", "call"',
       '"begin" is not valid; valid here: entry, exit, call')]),
    (function(name="f", args=[{"name": "1st", "type": "int32"}]),
     [("spec.user.functions[0].args[0].name", IDENTIFIER,
       '"1st" must be letters, digits and _, not beginning with a digit')]),
    (function(name="f", exclude=[""]), [("spec.user.functions[0].exclude[0]", "should be at least 1 chars long",
       '"" must not be empty')]),
    (function(name="f", args=[{"name": "a", "type": "bytes", "length": "n\n", "path": "a->b\n"}]),
     [("spec.user.functions[0].args[0].length", "must be a text without control characters",
       '"n\\x0a" must not have control characters in it'),
      ("spec.user.functions[0].args[0].path", "must be a text without control characters",
       '"a->b\\x0a" must not have control characters in it')]),
    ({"user": {"events": EVENTS, "attach": "yes"}}, [("spec.user.attach", "must be of type boolean",
       'must be true or false, not "yes"')]),
    (user(context=["vpdi"]), [("spec.context[0]", "must be one of callstack-kernel, callstack-user",
       '"vpdi" unknown context, did you mean "vpid"?')]),
    (user(context=["vpid", "vpid"]), [("spec.context[1]", "Duplicate value", '"vpid" is in this list twice')]),
    (user(buffer={"size": "3Ki"}), [("spec.buffer.size", SIZE,
       '"3Ki" is out of range, valid: a power of two, 4Ki to 64Mi')]),
    (user(buffer={"size": "big", "count": 4}), [("spec.buffer.size", SIZE,
       '"big": not a quantity such as 512Ki or 1Mi')]),
    (user(buffer={"count": 3}), [("spec.buffer.count", 'supported values: "2", "4", "8"',
       "3 is not a power of two, use 2 or 4")]),
    (user(buffer={"size": "64Mi", "count": 64}), [("spec.buffer", "size times count must be at most 1Gi")]),
    (user(buffer={"mode": "overwrit"}), [("spec.buffer.mode", 'supported values: "discard", "overwrite"',
       '"overwrit" is not valid, did you mean "overwrite"?')]),
    (user(storage={"maxSize": "1Mi"}), [("spec.storage.maxSize", "must be a quantity of bytes that is 16Mi to 1Pi",
       '"1Mi" is out of range, valid: 16Mi to 1Pi')]),
    (user(storage={"maxSize": "-1Gi"}), [("spec.storage.maxSize", "must be a quantity of bytes that is 16Mi to 1Pi",
       '"-1Gi": not a quantity such as 512Ki or 1Mi')]),
    (user(storage={"maxAge": "1s"}), [("spec.storage.maxAge", "must be 1m to 8784h",
       '"1s" is out of range, valid: 1m to 8784h')]),
    (user(paused="yes"), [("spec.paused", "must be of type boolean", 'must be true or false, not "yes"')]),
    (user(pods={"containers": ["My App"]}),
     [("spec.pods.containers[0]", "must be the name of a container: lower-case letters, digits and -",
       '"My App" must be lower-case letters, digits and -, beginning and ending with a letter or digit')]),
    (labels(operator="in", values=["shop"]),
     [("spec.pods.selector.matchExpressions[0].operator", 'supported values: "In", "NotIn"',
       '"in" is not valid, did you mean "In"?')]),
    (labels(operator="In", values=["-shop"]),
     [("spec.pods.selector.matchExpressions[0].values[0]", LABEL, f'"-shop" {LABEL_IN_FULL}')]),
    (labels(key="my app", operator="Exists"),
     [("spec.pods.selector.matchExpressions[0].key", "must be the key of a label, such as app or example.com/tier",
       '"my app" must be 1 to 63 letters, digits, -, _ and ., beginning and ending with a letter or digit, '
       "with a DNS name and a / before them or not")]),
    (user(pods={"selector": {"matchLabels": {"app": "my shop"}}}),
     [("spec.pods.selector.matchLabels[app]", LABEL, f'"my shop" {LABEL_IN_FULL}')]),
    (labels(operator="In"), [("spec.pods.selector.matchExpressions[0]", "must have values with In and NotIn",
       "must have values with In and NotIn, and none with Exists and DoesNotExist")]),
    ({"kernel": {"tracepoints": [{"name": "sched switch"}]}},
     [("spec.kernel.tracepoints[0].name", KERNEL_NAME, '"sched switch" must not contain " "')]),
    ({"kernel": {"syscalls": [{"name": "open at"}]}}, [("spec.kernel.syscalls[0].name", KERNEL_NAME,
       '"open at" must not contain " "')]),
    (probe(name="1st"), [("spec.kernel.probes[0].name", IDENTIFIER,
       '"1st" must be letters, digits and _, not beginning with a digit')]),
    (probe(symbol="vfs_*"),
     [("spec.kernel.probes[0].symbol", "must be the name of one kernel function, such as vfs_read",
       "must be one symbol, without *")]),
    (probe(offset=4, at="return"), [("spec.kernel.probes[0].offset", "only a probe at entry can have an offset")]),
    (user_probe(), [("spec.kernel.userProbes[0]", "must have exactly one of function, usdt")]),
    (user_probe(function="cos", object="libm.so"),
     [("spec.kernel.userProbes[0].object", "must be a path that begins with /",
       '"libm.so" must be the absolute path of a file')]),
    (user_probe(usdt="libc"), [("spec.kernel.userProbes[0].usdt", "must be provider:name",
       '"libc" must be provider:name, of letters, digits and _')]),
]
