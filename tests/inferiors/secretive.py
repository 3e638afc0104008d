"""A rank with secrets in its environment (set late, too), its arguments, its local variables and its title's place."""

import os
import sys
import threading

secret = sys.argv[1]
os.environ["LATE_API_KEY"] = secret
os.environ["NCCL_COMMENT"] = "password=" + secret


def serve(token, nested):
    password = bytearray(token.encode())
    credentials = {"token": token, "password": password}
    threading.Thread(target=wait, args=(credentials, token), daemon=True).start()
    print("ready", flush=True)
    wait(nested, token)


def wait(kept, token):
    threading.Event().wait()
    print(kept, token)


serve(secret, [secret, {"key": secret}])
