"""Servers for tests of the whole program; each says on standard output what it met, a line each.

  badserver.py stall                     reads a request and never answers
  badserver.py proxy                     an HTTP proxy that answers POST itself and ends CONNECT with 503
  badserver.py tunnel CERTIFICATE KEY    a proxy whose CONNECT leads to a TLS server that answers every POST

The first line is the address. Ends with its standard input.
"""
import os
import socket
import ssl
import sys
import threading


def say(text):
    print(text, flush=True)


def head(stream):
    """The first line of a request and its body, None at the end."""
    first = stream.readline(1 << 16).decode("latin-1").strip()
    if not first:
        return None
    length = 0
    while (line := stream.readline(1 << 16)) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower() == "content-length":
            length = int(value)
    stream.read(length)
    return first


def answer(client, status="200 OK"):
    client.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}".encode())


def serve(client, mode, files):
    with client, client.makefile("rb") as stream:
        while (first := head(stream)) is not None:
            say(first)
            if mode == "stall":
                client.recv(1)
                say("gone")
                return
            if first.startswith("CONNECT") and mode == "tunnel":
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                tls(client, files)
                return
            answer(client, "503 No" if first.startswith("CONNECT") else "200 OK")


def tls(client, files):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    with context.wrap_socket(client, server_side=True) as secure, secure.makefile("rb") as stream:
        while (first := head(stream)) is not None:
            say("inside: " + first)
            answer(secure)


def quietly(*arguments):
    try:
        serve(*arguments)
    except (OSError, ValueError) as error:
        say(f"ended: {error}")


def accept(listener):
    while True:
        client, _ = listener.accept()
        threading.Thread(target=quietly, args=(client, sys.argv[1], sys.argv[2:]), daemon=True).start()


listener = socket.create_server(("127.0.0.1", 0))
say("127.0.0.1:%d" % listener.getsockname()[1])
threading.Thread(target=accept, args=(listener,), daemon=True).start()
sys.stdin.read()
os._exit(0)
