"""ThingsBoard's storage in a process of its own: records of other programs in, the gateway's read loop out.

    storage.py SOCKET FOLDER SINKPORT

Run by the Python that has `thingsboard-gateway`. Nothing of the gateway but its storage is there: no connectors, no
converters, no MQTT; its cost is on top of what is measured here.
"""
import logging
import os
import socket
import sys
import threading
import time

from thingsboard_gateway.storage.sqlite.sqlite_event_storage import SQLiteEventStorage


class Logger(logging.Logger):
    """The storage traces; the gateway's own logger drops that unless asked."""

    def trace(self, message, *arguments, **options):
        if self.isEnabledFor(5):
            self._log(5, message, arguments, **options)


def send(storage, port):
    """As `__read_data_from_storage` of tb_gateway_service.py: a pack, the server's answer, the next one."""
    connection = None
    while True:
        try:
            if connection is None:
                connection = socket.create_connection(("127.0.0.1", port))
            if events := storage.get_event_pack():
                pack = "\n".join(events).encode()
                connection.sendall(b"%d\n%s" % (len(pack), pack))
                if connection.recv(16) != b"ok\n":
                    raise ConnectionError("no answer")
                storage.event_pack_processing_done()
            else:
                # minPackSendDelayMS
                time.sleep(0.05)
        except OSError:
            connection = None
            time.sleep(1)


def serve(client, storage):
    rest = b""
    while data := client.recv(1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        answers = b""
        for line in lines:
            if not storage.put(line.decode()):
                return
            answers += b"1\n"
        client.sendall(answers)


def main():
    path, folder, port = sys.argv[1:]
    logging.setLoggerClass(Logger)
    log = logging.getLogger("storage")
    log.setLevel(logging.WARNING)
    log.addHandler(logging.StreamHandler())
    # The storage's own defaults; its pragmas (WAL, synchronous=NORMAL) cannot be set.
    storage = SQLiteEventStorage({"data_file_path": folder}, log, threading.Event())
    threading.Thread(target=send, args=(storage, int(port)), daemon=True).start()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen()
    os.rename(path + ".new", path)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, storage), daemon=True).start()


main()
