"""Reads a proof with the packages of the projects that define its formats: python3 proof.py PROOF KEYS."""

import json
import sys

from cryptography.hazmat.primitives.serialization import load_pem_public_key
from google.protobuf import json_format
from in_toto_attestation.predicates.test_result.v0 import test_result_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

proof, keys = (open(path, "rb").read() for path in sys.argv[1:3])
pem = keys[keys.index(b"-----BEGIN") :]
keyid = json.loads(proof)["signatures"][0]["keyid"]
key = SSlibKey.from_crypto(load_pem_public_key(pem), keyid=keyid)


def envelope():
    return Envelope.from_dict(json.loads(proof))


assert list(envelope().verify([key], 1)) == [keyid]
assert envelope().payload_type == "application/vnd.in-toto+json"

for at in range(0, len(envelope().payload), 97):
    changed = envelope()
    changed.payload = changed.payload[:at] + bytes([changed.payload[at] ^ 1]) + changed.payload[at + 1 :]
    try:
        changed.verify([key], 1)
    except VerificationError:
        continue
    sys.exit(f"byte {at} of the payload does not count")

parsed = json_format.Parse(envelope().payload, statement_pb2.Statement())
Statement.copy_from_pb(parsed).validate()
assert parsed.predicate_type == "https://in-toto.io/attestation/test-result/v0.1"

predicate = json_format.MessageToDict(parsed.predicate)
facts = predicate.pop("towline")
# Everything but our own field is what the predicate's definition has.
result = json_format.ParseDict(predicate, test_result_pb2.TestResult())
for descriptor in result.configuration:
    ResourceDescriptor.copy_from_pb(descriptor).validate()
digests = {name: value for subject in parsed.subject for name, value in subject.digest.items()}
print(
    json.dumps(
        {
            "result": result.result,
            "passed": list(result.passed_tests),
            "failed": list(result.failed_tests),
            "configuration": [descriptor.name for descriptor in result.configuration],
            "commit": digests["gitCommit"],
            "tree": digests["gitTree"],
            "goal": facts["goal"]["id"],
        }
    )
)
