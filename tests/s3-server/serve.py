"""Serves S3 at a port of this machine, prints which, and ends when nobody holds its input any more.

    serve.py [CERTIFICATE KEY]    encrypts with these, if they are named
"""

import logging
import os
import sys
import threading

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server


def end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


# A line for each request says nothing that a test asks for.
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = make_server(
    "127.0.0.1",
    0,
    DomainDispatcherApplication(create_backend_app),
    threaded=True,
    request_handler=MotoRequestHandler,
    ssl_context=tuple(sys.argv[1:]) or None,
)
threading.Thread(target=end_with_input, daemon=True).start()
print(server.server_port, flush=True)
server.serve_forever()
