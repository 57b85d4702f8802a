"""Starts one emulator of AWS on a free port of the loopback, says where on stdout, and ends when stdin does.

    python3 start.py ministack|moto

Whoever starts it holds the other end of stdin: however that process ends, the kernel closes it, and nothing is left behind.
"""

import asyncio
import os
import socket
import sys
import threading


def end_with_stdin():
    while os.read(0, 4096):
        pass
    os._exit(0)


def say(port):
    # Whatever the emulator prints later goes to stderr: the one line on stdout is the address.
    print(f"http://127.0.0.1:{port}", flush=True)
    os.dup2(2, 1)


def ministack():
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    port = listener.getsockname()[1]
    # Read when the module is imported: addresses of queues carry the port.
    os.environ.update(GATEWAY_PORT=str(port), MINISTACK_HOST="127.0.0.1", IOT_MTLS_ENABLED="0", PERSIST_STATE="0")
    os.environ.setdefault("LOG_LEVEL", "ERROR")
    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    from ministack.app import app

    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.keep_alive_timeout = 75
    config.loglevel = os.environ["LOG_LEVEL"]
    # The socket listens already: a request that comes before the first turn of the loop waits in its backlog.
    say(port)
    asyncio.run(serve(app, config))


def moto():
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    inner = DomainDispatcherApplication(create_backend_app)
    # A transaction copies its tables, writes, and puts the copies back if a condition fails, all without a lock: two at once
    # undo each other. One request of DynamoDB at a time makes it what it stands for.
    tables = threading.Lock()

    def application(environ, start_response):
        if not environ.get("HTTP_X_AMZ_TARGET", "").startswith("DynamoDB_"):
            return inner(environ, start_response)
        with tables:
            return list(inner(environ, start_response))

    class Quiet(MotoRequestHandler):
        def log(self, *_):
            pass

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    server.socket.listen(1024)
    say(server.server_port)
    server.serve_forever()


threading.Thread(target=end_with_stdin, daemon=True).start()
{"ministack": ministack, "moto": moto}[sys.argv[1]]()
