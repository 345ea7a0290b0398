"""What feeds the chips: the seconds in which the input of a step is read from its source and decoded by processors of hosts.

How many processors there are is what the workload says of one host, else what the pool's machine has, else what hosts with the
chip usually have. Only kinds of decoding whose rate is known are counted.
"""

import re
from dataclasses import dataclass
from functools import cache
from statistics import median

from catalog import accelerator, machine_named, machines_of, slice_of
from core.advice import ALL_BLOCKS, Fed, Share
from core.device import Pool
from core.quantity import TIER_SIGMA, Quantity, log_normal, longer
from core.workload import DataPipeline, Workload

RAW = frozenset(("resize", "crop", "augment", "augmentation", "raw"))
"""Work on pixels that are there already: `bytes_per_sample` are those of the result."""
PICTURES = frozenset(("jpeg", "jpg", "png", "webp", "image", "images", "pictures"))
DECODED = RAW | PICTURES | frozenset(("video", "mp4", "audio", "mp3", "flac"))
ON_CHIP = frozenset(("dali", "nvjpeg", "nvimagecodec", "gpu"))
"""Decoders that leave the processors alone."""
PICTURE_BYTES = 110e3
COMPRESSED_BYTES_PER_S, RAW_BYTES_PER_S = 13e6, 18e6
"""What one processor works off: 120 pictures of 224 pixels a second, 110 kB each as JPEG, 150 kB as pixels.

Source: rule R090 and the public threads behind it (13 to 18 MB/s a processor).
"""
DECODING_SIGMA = TIER_SIGMA["published"]
"""Standard deviation of ln(truth / told) of decoding: processors and what is done to a sample differ (prior)."""
READING_SIGMA = 0.1
"""The same of reading at a rate that the workload says (prior)."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """How the samples of a workload are decoded on a pool.

    Args:
        kind: as the workload names it.
        each_bytes: of a sample.
        bytes_per_s: that one processor works off.
        processors: of all hosts.
        whose: in one phrase where their number is from.
    """

    kind: str
    each_bytes: float
    bytes_per_s: float
    processors: float
    whose: str

    def seconds(self, samples: float) -> float:
        """Return the seconds that so many samples take.

        Args:
            samples: of one step.
        """
        return samples * self.each_bytes / (self.bytes_per_s * self.processors)

    @property
    def words(self) -> str:
        """In one phrase: what by how many processors at what rate."""
        rate = self.bytes_per_s / self.each_bytes
        return f"{self.kind} decoded by {self.processors:.0f} processors ({self.whose}), {rate:.3g} samples a second each"


def decoding_of(data: DataPipeline, key: str, chips: int, hosts: int, vcpus: float | None = None) -> Decoding | None:
    """Return how samples are decoded on a pool; None where nothing is, or where no rate or no host is known.

    Args:
        data: what the workload says of its input.
        key: of the accelerator; empty where the catalog does not have it.
        chips, hosts: of the pool.
        vcpus: of all its hosts, where its machine or its price list says it.
    """
    kind = data.decode or ""
    words = _words(kind)
    each_bytes = sample_bytes(data)
    if not words & DECODED or words & ON_CHIP or not each_bytes:
        return None
    usual = _usual(key, chips) if key else None
    if data.host_vcpus:
        processors, whose = float(data.host_vcpus * hosts), f"{data.host_vcpus} of each host, as the workload says"
    elif vcpus is not None:
        processors, whose = vcpus, "of the machine that is named, priced or here"
    elif usual is not None:
        processors, whose = usual
    else:
        return None
    rate = COMPRESSED_BYTES_PER_S if words & (DECODED - RAW) else RAW_BYTES_PER_S
    return Decoding(kind, each_bytes, rate, processors, whose)


def sample_bytes(data: DataPipeline) -> float | None:
    """Return the bytes of a sample: as the workload says, or as pictures usually have; None where nobody knows."""
    usual = PICTURE_BYTES if _words(data.decode or "") & PICTURES else None
    return usual if data.bytes_per_sample is None else data.bytes_per_sample


def _words(kind: str) -> frozenset[str]:
    return frozenset(re.split(r"[^a-z0-9]+", kind.lower()))


@cache
def _usual(key: str, chips: int) -> tuple[float, str] | None:
    """Return the processors of all hosts of so many chips, and in one phrase whose they are; None where no host is known.

    A slice has the machines that its cloud builds it of. GPUs come in machines of several clouds: the median of those that
    have so many chips, or as many as a host has, counts for each chip.
    """
    known = slice_of(key, chips)
    machine = machine_named(known.machine) if known is not None else None
    if machine is not None and machine.vcpus is not None:
        return machine.vcpus * chips / machine.chips, f"{machine.vcpus} of each {machine.name}"
    told = [one for one in machines_of(key) if one.vcpus is not None]
    if not told:
        return None
    least = min(chips, accelerator(key).chips_per_host or 1, max(one.chips for one in told))
    each = median((one.vcpus or 0) / one.chips for one in told if one.chips >= least)
    return each * chips, f"{each:.3g} for each {key}, as its machines have them"


def input_seconds(workload: Workload, pool: Pool) -> float:
    """Return seconds that the input of one step takes: to be read from its source, and to be decoded by the hosts.

    Args:
        workload: the job; what it does not say of its input is not counted.
        pool: whose hosts decode.
    """
    data = workload.data
    read_s = workload.batch * (sample_bytes(data) or 0.0) / data.source_bytes_per_s if data.source_bytes_per_s else 0.0
    decoding = _decoded_on(workload, pool)
    return max(read_s, 0.0 if decoding is None else decoding.seconds(workload.batch))


def fed_of(workload: Workload, pool: Pool, chips_s: Quantity) -> Fed | None:
    """Return what a step takes of its chips and of its input; None where the workload says of its input nothing that counts.

    Args:
        workload, pool: as for `input_seconds`.
        chips_s: seconds of a step without any wait for input.
    """
    seconds = input_seconds(workload, pool)
    if seconds <= 0:
        return None
    decoded = _decodes(workload, pool, seconds) is not None
    sigma, tier = (DECODING_SIGMA, "published") if decoded else (READING_SIGMA, "datasheet")
    return Fed(chips_s, log_normal(seconds, sigma, tier, input_words(workload, pool)))


def step_of(chips_s: Quantity, fed: Fed | None) -> Quantity:
    """Return seconds of a step: the longer of what its chips and what its input take.

    Args:
        chips_s: without any wait for input.
        fed: from `fed_of`.
    """
    if fed is None:
        return chips_s
    step = longer(chips_s, fed.input_s)
    evidence = tuple(dict.fromkeys((*chips_s.evidence, *step.evidence)))
    return Quantity(step.low, step.mid, step.high, step.tier, evidence)


def waiting(fed: Fed | None) -> tuple[Share, ...]:
    """Return the slice of a step in which its chips wait for input; none where they do not.

    Args:
        fed: from `fed_of`.
    """
    if fed is None or fed.waits_s <= 0:
        return ()
    return (Share("input", ALL_BLOCKS, fed.input_s.scaled(fed.waits_s / fed.input_s.mid)),)


def _decoded_on(workload: Workload, pool: Pool) -> Decoding | None:
    """Return how the input is decoded on a pool, by the processors here where it is attached; None as for `decoding_of`."""
    if not workload.data.decode:
        return None
    return decoding_of(workload.data, "" if pool.attached else pool.accelerator, pool.count, pool.hosts, pool.vcpus)


def _decodes(workload: Workload, pool: Pool, seconds: float) -> Decoding | None:
    """Return how the input is decoded where that is what takes so many seconds; None where it is read as slowly."""
    decoding = _decoded_on(workload, pool)
    return decoding if decoding is not None and decoding.seconds(workload.batch) >= seconds else None


def input_words(workload: Workload, pool: Pool) -> str:
    """Return in one phrase what feeds a step, as evidence of the seconds that it waits.

    Args:
        workload, pool: as for `input_seconds`.
    """
    decoding = _decodes(workload, pool, input_seconds(workload, pool))
    return f"read at {(workload.data.source_bytes_per_s or 0.0) / 1e6:.4g} MB/s" if decoding is None else decoding.words
