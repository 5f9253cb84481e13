"""An upstream with HTTP/2 over TLS, which on request produces a fault instead of a reply: `refuse`, `reset` (of the stream),
`half` (then a reset), `goaway` (abandons the open streams), `close` (of the connection)."""

import json
import os
import socket
import ssl
import subprocess
import threading

import h2.config
import h2.connection
import h2.events

from served import reply_to


class SecureUpstream:
    fault, streams, connections = None, 0, 0

    def __init__(self, context):
        self.context = context
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            with self.context.wrap_socket(client, server_side=True) as stream:
                self.connections += 1
                self.speak(stream)
        except OSError:
            # The gateway may close the connection at any time.
            pass

    def speak(self, stream):
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        stream.sendall(connection.data_to_send())
        bodies = {}
        while data := stream.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    bodies[event.stream_id] = bodies.get(event.stream_id, b"") + event.data
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    self.streams += 1
                    if self.answer(connection, event.stream_id, bodies.pop(event.stream_id, b"")):
                        return stream.sendall(connection.data_to_send())
            stream.sendall(connection.data_to_send())

    def answer(self, connection, number, body):
        """Answers a stream. Returns whether the connection ends with it."""
        fault, payload = self.fault, json.dumps(reply_to(json.loads(body))).encode()
        if fault == "close":
            return True
        if fault == "goaway":
            connection.close_connection(last_stream_id=max(0, number - 2))
            return True
        if fault == "reset":
            connection.reset_stream(number, error_code=2)
            return False
        head = [(":status", "503" if fault == "refuse" else "200"), ("content-type", "application/json")]
        connection.send_headers(number, head)
        if fault == "half":
            connection.send_data(number, payload[: len(payload) // 2])
            connection.reset_stream(number, error_code=2)
        else:
            connection.send_data(number, payload, end_stream=True)
        return False


def start(folder):
    """Returns the upstream, and the file of the authority that signed its certificate."""
    key, certificate = os.path.join(folder, "upstream.key"), os.path.join(folder, "upstream.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return SecureUpstream(context), certificate
