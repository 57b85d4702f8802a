"""The same journeys over gRPC by Google's own client for Python.

The server is somebody else's: RUNVOY_URL, RUNVOY_KEY (an admin's) and RUNVOY_WORKER_KEY say where it is and who asks. The code of the
messages is made from `proto/` at the start, in a directory of its own.
"""

import base64
import hashlib
import json
import os
import pathlib
import sys
import tempfile
import threading
import time
import unittest
import uuid
from concurrent.futures import ThreadPoolExecutor

import grpc
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from grpc_tools import protoc
import grpc_tools

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"
MADE = tempfile.TemporaryDirectory(prefix="runvoy-rpc-")
FILES = ["job/v1/job.proto", "principal/v1/principal.proto"]
WELL_KNOWN = pathlib.Path(grpc_tools.__file__).parent / "_proto"
if protoc.main(["protoc", f"-I{PROTO}", f"-I{WELL_KNOWN}", f"--python_out={MADE.name}", f"--grpc_python_out={MADE.name}", *FILES]) != 0:
    sys.exit("the definitions in proto/ cannot be read")
sys.path.insert(0, MADE.name)

from job.v1 import job_pb2 as job, job_pb2_grpc as job_rpc  # noqa: E402
from principal.v1 import principal_pb2 as principal, principal_pb2_grpc as principal_rpc  # noqa: E402

URL, KEY, WORKER_KEY = (os.environ[name] for name in ("RUNVOY_URL", "RUNVOY_KEY", "RUNVOY_WORKER_KEY"))
QUEUE = "python"
ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Client:
    """Every service, with one key."""

    def __init__(self, key):
        self.channel = grpc.insecure_channel(URL.removeprefix("http://"))
        self.metadata = [("authorization", f"Bearer {key}")] if key else []
        self.jobs = job_rpc.JobServiceStub(self.channel)
        self.events = job_rpc.JobEventsServiceStub(self.channel)
        self.credentials = principal_rpc.CredentialServiceStub(self.channel)

    def call(self, method, request, **more):
        return method(request, metadata=self.metadata, **more)

    def enqueue(self, request_id=None, queue=QUEUE, **params):
        params = {"command": "true", **params}
        request = job.EnqueueJobRequest(request_id=request_id or str(uuid.uuid4()), queue=queue, job_params=job.JobParams(**params))
        return self.call(self.jobs.EnqueueJob, request)

    def take(self, queue=QUEUE):
        stream = self.call(self.jobs.DequeueJob, job.DequeueJobRequest(queue=queue, max_jobs=1), timeout=60)
        return next(stream)

    def complete(self, token, **result):
        return self.call(self.jobs.CompleteJob, job.CompleteJobRequest(task_token=token, job_result=job.JobResult(**result)))

    def look(self, job_id):
        return self.call(self.jobs.GetJob, job.GetJobRequest(job_id=job_id)).job

    def publish(self, token, *batches):
        requests = (job.PublishJobEventsRequest(task_token=token, events=events) for events in batches)
        return self.call(self.events.PublishJobEvents, requests)

    def read(self, job_id, **more):
        stream = self.call(self.events.StreamJobEvents, job.StreamJobEventsRequest(job_id=job_id, **more), timeout=60)
        return [answer.event for answer in stream]


def start(sequence):
    return job.JobEvent(sequence=sequence, event_type=job.EVENT_TYPE_PROCESS_START, process_start=job.ProcessStartEvent(pid=7))


def output(sequence, text):
    return job.JobEvent(sequence=sequence, event_type=job.EVENT_TYPE_OUTPUT, output=job.OutputEvent(output=text))


def end(sequence):
    return job.JobEvent(sequence=sequence, event_type=job.EVENT_TYPE_PROCESS_END, process_end=job.ProcessEndEvent(pid=7, exit_code=0))


def base58(data):
    number, digits = int.from_bytes(data, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        digits = ALPHABET[rest] + digits
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + digits


def part(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(key, kid, **claims):
    """A token as a worker makes one for itself."""
    now = int(time.time())
    body = {"iss": "a worker", "sub": "a worker", "aud": "runvoy", "iat": now, "exp": now + 300, **claims}
    text = f"{part(json.dumps({'alg': 'ES256', 'typ': 'JWT', 'kid': kid}).encode())}.{part(json.dumps(body).encode())}"
    r, s = utils.decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{text}.{part(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


class Journeys(unittest.TestCase):
    def setUp(self):
        self.admin, self.worker = Client(KEY), Client(WORKER_KEY)

    def refusal(self, call, *args, **more):
        with self.assertRaises(grpc.RpcError) as refused:
            call(*args, **more)
        return refused.exception.code()

    def test_the_same_request_is_the_same_job(self):
        request_id = str(uuid.uuid4())
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda _: self.admin.enqueue(request_id), range(16)))
        self.assertEqual(len({answer.job_id for answer in made}), 1)
        self.assertEqual(made[0].state, job.JOB_STATE_SCHEDULED)
        cancelled = self.admin.call(self.admin.jobs.CancelJob, job.CancelJobRequest(job_id=made[0].job_id))
        self.assertEqual(cancelled.job.state, job.JOB_STATE_CANCELLED)

    def test_a_job_from_submit_to_end(self):
        stream = self.worker.call(self.worker.jobs.DequeueJob, job.DequeueJobRequest(queue=QUEUE, visibility_timeout_seconds=60), timeout=60)
        leases = []
        waiting = threading.Thread(target=lambda: leases.extend(stream))
        waiting.start()
        made = self.admin.enqueue(command="make", args=["all"], environment={"A": "a value"})
        waiting.join(60)
        (lease,) = leases
        self.assertEqual(lease.job.job_id, made.job_id)
        params = lease.job.job_params
        self.assertEqual((params.command, list(params.args), dict(params.environment)), ("make", ["all"], {"A": "a value"}))
        self.assertEqual(self.admin.look(made.job_id).state, job.JOB_STATE_RUNNING)

        seen = []
        request = job.StreamJobEventsRequest(job_id=made.job_id)
        follower = self.admin.call(self.admin.events.StreamJobEvents, request, timeout=60)
        go_on, saw_first = threading.Event(), threading.Event()

        def follow():
            for answer in follower:
                seen.append((answer.event.sequence, answer.event.event_type, answer.event.output.output))
                saw_first.set()

        def requests():
            yield job.PublishJobEventsRequest(task_token=lease.task_token, events=[start(1)])
            go_on.wait(60)
            yield job.PublishJobEventsRequest(events=[output(2, b"one\ntwo\n")])
            yield job.PublishJobEventsRequest(events=[end(3)])

        following = threading.Thread(target=follow)
        following.start()
        published = self.worker.events.PublishJobEvents.future(requests(), metadata=self.worker.metadata)
        self.assertTrue(saw_first.wait(60), "an event is read while the stream that publishes it is open")
        go_on.set()
        published.result(60)
        request = job.UpdateJobRequest(queue=QUEUE, task_token=lease.task_token, visibility_timeout_seconds=60)
        self.assertEqual(self.worker.call(self.worker.jobs.UpdateJob, request).lease_ttl_ms, 60_000)
        self.worker.complete(lease.task_token, job_id=made.job_id, success=True)
        following.join(60)
        expected = [
            (1, job.EVENT_TYPE_PROCESS_START, b""),
            (2, job.EVENT_TYPE_OUTPUT, b"one\ntwo\n"),
            (3, job.EVENT_TYPE_PROCESS_END, b""),
        ]
        self.assertEqual(seen, expected)
        self.assertEqual([event.sequence for event in self.admin.read(made.job_id, from_sequence=2)], [2, 3])
        ended = self.admin.look(made.job_id)
        self.assertEqual((ended.state, ended.exit_code), (job.JOB_STATE_COMPLETED, 0))

    def test_publishing_again_stores_once(self):
        made, lease = self.admin.enqueue(), self.worker.take()
        self.worker.publish(lease.task_token, [start(1), output(2, b"a\n")])
        self.worker.publish(lease.task_token, [output(2, b"a\n")], [output(3, b"b\n")])
        self.worker.complete(lease.task_token, success=False, exit_code=2)
        self.assertEqual([event.output.output for event in self.admin.read(made.job_id)], [b"", b"a\n", b"b\n"])
        self.assertEqual(self.admin.look(made.job_id).state, job.JOB_STATE_FAILED)

    def test_lists_come_in_pages(self):
        made = [self.admin.enqueue(queue="python-list").job_id for _ in range(5)][::-1]
        pages = [
            self.admin.call(self.admin.jobs.ListJobs, job.ListJobsRequest(queue="python-list", page=page, page_size=2)) for page in (1, 2, 3)
        ]
        self.assertEqual([one.job_id for page in pages for one in page.jobs], made)
        self.assertEqual(pages[0].last_page, 3)

    def test_what_is_wrong_has_its_code(self):
        unknown = job.GetJobRequest(job_id="0190a1b2c3d47e5f8a9b0c1d2e3f4a5b")
        self.assertEqual(self.refusal(self.admin.call, self.admin.jobs.GetJob, unknown), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(self.refusal(self.admin.enqueue, queue="nobody-knows-it"), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(self.refusal(self.worker.complete, "x y", success=True), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(self.refusal(self.worker.enqueue), grpc.StatusCode.PERMISSION_DENIED)
        self.assertEqual(self.refusal(Client("rv_wrong").enqueue), grpc.StatusCode.UNAUTHENTICATED)
        self.assertEqual(self.refusal(self.worker.take, "default"), grpc.StatusCode.PERMISSION_DENIED)
        waiting = self.worker.call(self.worker.jobs.DequeueJob, job.DequeueJobRequest(queue=QUEUE), timeout=0.3)
        self.assertEqual(self.refusal(next, waiting), grpc.StatusCode.DEADLINE_EXCEEDED)

    def test_a_worker_signs_for_itself(self):
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key()
        kid = base58(hashlib.sha256(public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)).digest())
        pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
        self.assertEqual(self.refusal(Client(sign(key, kid)).take), grpc.StatusCode.UNAUTHENTICATED)
        request = principal.ImportCredentialRequest(name=f"signer-{uuid.uuid4().hex[:8]}", public_key_pem=pem)
        registered = self.admin.call(self.admin.credentials.ImportCredential, request)
        self.assertEqual(registered.fingerprint, kid)
        made, signer = self.admin.enqueue(queue="python-credential"), Client(sign(key, kid))
        lease = signer.take("python-credential")
        self.assertEqual(lease.job.job_id, made.job_id)
        signer.complete(lease.task_token, success=True)
        self.assertEqual(self.admin.look(made.job_id).state, job.JOB_STATE_COMPLETED)
        self.assertEqual(self.refusal(Client(sign(key, kid, exp=int(time.time()) - 120)).take), grpc.StatusCode.UNAUTHENTICATED)
        request = principal.RevokeCredentialRequest(principal_id=registered.principal_id)
        self.admin.call(self.admin.credentials.RevokeCredential, request)
        self.assertEqual(self.refusal(signer.take, "python-credential"), grpc.StatusCode.UNAUTHENTICATED)


if __name__ == "__main__":
    unittest.main(verbosity=2)
