"""How slow the guest is, and waiting that allows for it."""
import time

# Bounds hold for a guest that computes at most so many times slower than its host; they widen with what is above.
USUAL = 20


class Pace:
    """Times slower than the host, when last measured, and what bounds are multiplied by."""

    slower = 1.0
    patience = 1.0

    @classmethod
    def measure(cls, host):
        cls.slower = pace() / host
        cls.patience = max(1.0, cls.slower / USUAL)


def pace():
    """Seconds for a fixed piece of work, by the clock that the scenarios go by."""
    began = time.monotonic()
    sum(number * number % 7 for number in range(300_000))
    return time.monotonic() - began


def wait_for(condition, limit):
    """Seconds until the condition holds; None when it does not within `limit`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit * Pace.patience:
            return None
        time.sleep(0.05)
    return time.monotonic() - began


def is_prompt(seconds, within=5.0):
    """Whether something came, and in time."""
    return seconds is not None and seconds <= within * Pace.patience
