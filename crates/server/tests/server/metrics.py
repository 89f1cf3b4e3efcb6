"""Reads /metrics with the parser of Prometheus' own client, and prints its families as JSON."""

import json
import os
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

request = urllib.request.Request(
    os.environ["URL"] + "/metrics", headers={"Authorization": "Bearer " + os.environ["TOKEN"]}
)
with urllib.request.urlopen(request, timeout=20) as reply:
    kind = reply.headers["Content-Type"]
    text = reply.read().decode()
families = {
    family.name: {
        "type": family.type,
        "help": family.documentation,
        "samples": [[sample.name, sample.labels, float(sample.value)] for sample in family.samples],
    }
    for family in text_string_to_metric_families(text)
}
print(json.dumps({"content_type": kind, "families": families}))
