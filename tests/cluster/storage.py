# SPDX-License-Identifier: Apache-2.0
"""Persistent volumes: a few folders of each node under a default storage class, made beforehand.

Nothing provisions or cleans them: a volume is used once, and goes with the cluster.
"""

import json

from tests.cluster.settings import VOLUMES_PER_NODE, VOLUME_SIZE

CLASS = "local"


def storage_class():
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": CLASS, "annotations": {
                "storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer"}  # a volume is on its node


def folder(node, number):
    return node.folder / "volumes" / str(number)


def volume(node, number):
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node.name]}
    return {"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": f"{node.name}-{number}"},
            "spec": {"storageClassName": CLASS, "accessModes": ["ReadWriteOnce"],
                     "capacity": {"storage": VOLUME_SIZE}, "persistentVolumeReclaimPolicy": "Retain",
                     "local": {"path": str(folder(node, number))},
                     "nodeAffinity": {"required": {"nodeSelectorTerms": [
                         {"matchExpressions": [on_node]}]}}}}


def make(nodes):
    """Makes the folders; returns the objects, as kubectl takes them."""
    items = [storage_class()]
    for node in nodes:
        for number in range(1, VOLUMES_PER_NODE + 1):
            folder(node, number).mkdir(parents=True)
            items.append(volume(node, number))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
