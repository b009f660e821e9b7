"""An S3-compatible store on loopback for tests: moto, which checks each signature, with faults on demand.

Needs moto, Flask and boto3 (PyPI). Prints one line of JSON with endpoint, bucket, id and secret, then a line
`PUT NAME KEY` for each object that was put, NAME being what was done with it. Ends when its standard input does.

    store.py [NAME ...]     what to do with the first objects that hold data, in turn; the rest are stored

ok      stored
cut     hung up on before anything is stored
stored  stored, then hung up on: the answer is lost
hang    stored, and never answered
503     answered with SlowDown
500     answered with InternalError
403     answered with AccessDenied
413     answered with EntityTooLarge
301     answered with PermanentRedirect to another region
portal  answered with 200 by somebody who is no store
"""

import json
import queue
import sys
import threading

import boto3
from moto import settings
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wsgi import get_input_stream

BUCKET = "field-data"
ERRORS = {"503": ("503 Slow Down", "SlowDown", "Please reduce your request rate."),
          "500": ("500 Internal Server Error", "InternalError", "We encountered an internal error."),
          "403": ("403 Forbidden", "AccessDenied", "Access Denied"),
          "413": ("400 Bad Request", "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size"),
          "301": ("301 Moved Permanently", "PermanentRedirect", "Use another endpoint."),
          "portal": ("200 OK", "Welcome", "Log in here.")}


# Printed lines; a test that does not read them blocks nothing.
LINES = queue.SimpleQueue()


def print_lines():
    while True:
        print(LINES.get(), flush=True)


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


class Faults:
    """Does to requests what the plan says, then what moto does."""

    def __init__(self, inner):
        self.inner = inner
        self.plan = None
        self.lock = threading.Lock()

    def __call__(self, environ, start_response):
        if self.plan is None or environ["REQUEST_METHOD"] != "PUT":
            return self.inner(environ, start_response)
        with self.lock:
            # An enrolment comes when it likes, so the plan is not about it.
            fault = self.plan.pop(0) if self.plan and "/_waypost/" not in environ["PATH_INFO"] else "ok"
        try:
            return self.act(fault, environ, start_response)
        finally:
            LINES.put(f"PUT {fault} {environ['PATH_INFO']}")
            if fault == "hang":
                threading.Event().wait()

    def act(self, fault, environ, start_response):
        if fault in ERRORS:
            status, code, message = ERRORS[fault]
            get_input_stream(environ).read()
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
            start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [body]
        if fault == "cut":
            start_response("500 Gone", [("Content-Length", "0")])
        answer = [] if fault == "cut" else list(self.inner(environ, start_response))
        if fault in ("cut", "stored"):
            environ["werkzeug.socket"].shutdown(2)
        return answer


def make_keys(endpoint):
    """A user who may do anything with S3, and the bucket; from then on each request must be signed by such a user."""
    login = dict(endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    iam = boto3.client("iam", **login)
    iam.create_user(UserName="gateway")
    rule = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
    policy = iam.create_policy(PolicyName="store", PolicyDocument=json.dumps(rule))["Policy"]["Arn"]
    iam.attach_user_policy(UserName="gateway", PolicyArn=policy)
    boto3.client("s3", **login).create_bucket(Bucket=BUCKET)
    key = iam.create_access_key(UserName="gateway")["AccessKey"]
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    return key["AccessKeyId"], key["SecretAccessKey"]


def main():
    faults = Faults(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, faults, threaded=True, request_handler=Quiet)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    key, secret = make_keys(endpoint)
    faults.plan = sys.argv[1:]
    LINES.put(json.dumps({"endpoint": endpoint, "bucket": BUCKET, "id": key, "secret": secret}))
    threading.Thread(target=print_lines, daemon=True).start()
    sys.stdin.read()


main()
