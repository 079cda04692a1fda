"""A receiver's check of a delivery, with the standard library alone.

usage: verify.py SECRET PREFIX < headers, an empty line, the raw body
Prints the families that are genuine: `standard` (id, time and body are signed), `own` (the body is).
"""

import base64
import hashlib
import hmac
import sys
import time

TOLERANCE_S = 300


def standard(headers, body, secret):
    sent, now = int(headers["webhook-timestamp"]), time.time()
    if abs(now - sent) > TOLERANCE_S:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{sent}.".encode() + body
    wanted = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(wanted, given) for given in headers["webhook-signature"].split(" "))


def own(headers, body, secret, prefix):
    wanted = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted, headers[prefix.lower() + "signature"])


def main():
    secret, prefix = sys.argv[1:]
    head, _, body = sys.stdin.buffer.read().partition(b"\n\n")
    headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
    genuine = ["standard"] if standard(headers, body, secret) else []
    genuine += ["own"] if own(headers, body, secret, prefix) else []
    print(*genuine)
    sys.exit(0 if genuine else 1)


main()
