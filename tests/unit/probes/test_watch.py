"""The watch beside a measurement: recorded readings, a recorded management library, and files of a kernel."""

from pathlib import Path

import pynvml

from probes.watch import CpuSensor, NvidiaSensor, Reading, Watch, held_down, throttle_doubt

FULL = Reading(1.98e9, 1.98e9)


class Recorded:
    """Plays readings in order, the last again and again."""

    def __init__(self, *readings: Reading | None) -> None:
        self.readings = list(readings)

    def read(self) -> Reading | None:
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]


class RecordedLibrary:
    """Answers like NVML about a board that is held down by heat; what a driver lacks is not there."""

    NVMLError = pynvml.NVMLError

    def __init__(self, clock: int, default: int, reasons: int) -> None:
        self.clock, self.default, self.bits = clock, default, reasons

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid != "GPU-1":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return uuid

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return self.clock

    def nvmlDeviceGetDefaultApplicationsClock(self, handle: str, kind: int) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def nvmlDeviceGetMaxClockInfo(self, handle: str, kind: int) -> int:
        return self.default

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return self.bits


def test_a_chip_at_its_clock_is_not_held_down() -> None:
    assert held_down([FULL, FULL]) == ""


def test_a_thermal_or_power_brake_bit_is_named() -> None:
    assert held_down([FULL, Reading(1.9e9, 1.98e9, 64)]) == "hardware thermal"
    assert held_down([Reading(1.9e9, 1.98e9, 128 | 8)]) == "hardware slowdown, power brake"


def test_a_power_cap_alone_is_how_such_chips_run() -> None:
    assert held_down([Reading(1.7e9, 1.98e9, 4)]) == ""


def test_a_clock_under_three_quarters_of_the_default_is_named_unless_the_chip_was_idle() -> None:
    assert held_down([Reading(1.2e9, 1.98e9)] * 3) == "clock at 61% of its default"
    assert held_down([Reading(0.3e9, 1.98e9, 1)] * 3) == ""


def test_a_watch_reads_from_a_thread_of_its_own_and_stops_with_the_measurement() -> None:
    watch = Watch(Recorded(Reading(1.0e9, 1.98e9, 32)))
    with watch:
        pass
    assert watch.readings
    assert throttle_doubt(watch.throttled).startswith("throttled: software thermal")
    assert not throttle_doubt("")


def test_a_device_without_a_sensor_is_not_judged() -> None:
    with Watch(None) as watch:
        pass
    assert watch.throttled == ""


def test_a_cool_down_ends_as_soon_as_the_chip_is_let_go() -> None:
    sensor = Recorded(Reading(1.0e9, 1.98e9, 32), FULL)
    Watch(sensor, every_s=0.001).cool_down(lambda: False)
    assert sensor.readings == [FULL]


def test_the_management_library_of_an_old_driver_is_read() -> None:
    sensor = NvidiaSensor(RecordedLibrary(1200, 1980, 96), "GPU-1")
    reading = sensor.read()
    assert reading == Reading(1.2e9, 1.98e9, 96)
    assert held_down([reading]) == "software thermal, hardware thermal"


def test_a_board_that_does_not_answer_gives_no_reading() -> None:
    assert NvidiaSensor(RecordedLibrary(1200, 1980, 96), "GPU-2").read() is None


def test_a_processor_is_read_from_the_files_of_its_kernel(tmp_path: Path) -> None:
    information = tmp_path / "cpuinfo"
    information.write_text("model name\t: Some CPU @ 2.60GHz\ncpu MHz\t\t: 1300.0\n\nmodel name\t: x\ncpu MHz\t\t: 1200.0\n")
    assert CpuSensor(information, tmp_path).read() == Reading(1.3e9, 2.6e9)
    for core, khz in ((0, 2400000), (1, 2600000)):
        folder = tmp_path / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(str(khz))
    (tmp_path / "cpu0" / "cpufreq" / "base_frequency").write_text("2500000")
    assert CpuSensor(information, tmp_path).read() == Reading(2.6e9, 2.5e9)
    assert CpuSensor(tmp_path / "none", tmp_path / "none").read() is None
