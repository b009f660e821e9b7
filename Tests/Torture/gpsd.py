"""A gpsd with a receiver that walks north: ten positions a second for each client that watches."""
import json
import time

from listening import Listening


class Walk(Listening):
    def serve(self, client):
        def send(**fields):
            client.sendall(json.dumps(fields, separators=(",", ":")).encode() + b"\r\n")

        try:
            send(**{"class": "VERSION"}, release="3.25", rev="3.25", proto_major=3, proto_minor=15)
            step = 0
            while True:
                when = time.time()
                stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(when)) + f".{int(when * 1000) % 1000:03d}Z"
                send(**{"class": "TPV"}, device="/dev/walk", mode=3, time=stamp, lat=46.5 + step * 1e-6,
                     lon=9.8, altMSL=1800.0, speed=1.4, track=0.0, epx=3.0, epy=3.0, epv=5.0, eph=4.0)
                step += 1
                time.sleep(0.1)
        except OSError:
            pass
        finally:
            client.close()

    def end(self):
        self.listener.close()
