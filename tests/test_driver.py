"""The CUDA driver starts in a thread, which has ended when the block has, whatever happens."""

import ctypes
import threading
import time

import pytest

from outbid.compute import cuda


class Driver:
    """Stands in for the driver's library; the context takes a moment."""

    def __init__(self, initialised=0):
        self.asked, self.initialised = [], initialised

    def cuInit(self, flags):
        self.asked.append(("cuInit", flags))
        return self.initialised

    def cuDeviceGet(self, device, number):  # noqa: ARG002
        self.asked.append(("cuDeviceGet", number))
        return 0

    def cuDevicePrimaryCtxRetain(self, context, device):  # noqa: ARG002
        time.sleep(0.1)
        self.asked.append(("cuDevicePrimaryCtxRetain", threading.current_thread()))
        return 0


def test_the_context_is_made_beside_and_waited_for(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: driver)
    with pytest.raises(ValueError, match="refused"), cuda.driver_starting(wanted=True):
        raise ValueError("refused")
    assert [name for name, _ in driver.asked] == ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]
    assert driver.asked[-1][1] is not threading.current_thread()


@pytest.mark.parametrize("wanted", [False, True])
def test_nothing_is_asked_of_a_driver_that_is_not_wanted_or_does_not_start(monkeypatch, wanted):
    driver = Driver(initialised=100)  # no device
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: driver)
    with cuda.driver_starting(wanted=wanted):
        pass
    assert driver.asked == ([("cuInit", 0)] if wanted else [])


def test_a_machine_without_a_driver_goes_on(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with cuda.driver_starting(wanted=True):
        pass
