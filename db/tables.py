"""The tables, as the newest migration leaves them.

Words are kept as canonical JSON text of `core.codec`, read back strictly; beside them stand the few columns that are
searched, sorted or held to an invariant. Unique keys and checks carry the invariants, so that no isolation level has to.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from core.run import FINAL_STATES, RUN_STATES

metadata = MetaData(naming_convention={
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
})
UNFINISHED_STATES = tuple(state for state in RUN_STATES if state not in FINAL_STATES)


def _one_of(column: str, words: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(word) for word in words)})"


runs = Table(
    "runs", metadata,
    Column("id", String(32), primary_key=True),
    Column("created_at", String(40), nullable=False),
    Column("finished_at", String(40)),
    Column("state", String(16), nullable=False),
    Column("name", Text, nullable=False),
    Column("task", String(16), nullable=False),
    Column("owner", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Column("devices", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Column("progress", Text, nullable=False),
    Column("recommendation", Text),
    Column("split", Text),
    Column("best", Text, nullable=False),
    Column("step_time_s", Double),
    Column("cancel_asked_at_s", Double),
    Column("beat_at_s", Double, nullable=False),
    Column("beat_boot_id", String(64), nullable=False),
    Column("beat_monotonic_s", Double, nullable=False),
    Column("process_host", Text),
    Column("process_boot_id", String(64)),
    Column("process_pid", Integer),
    Column("process_start_ticks", BigInteger),
    CheckConstraint(_one_of("state", RUN_STATES), name="state_known"),
    CheckConstraint(f"(finished_at IS NULL) = ({_one_of('state', UNFINISHED_STATES)})", name="finished_with_time"),
    CheckConstraint("(process_pid IS NULL) = (process_host IS NULL) AND (process_pid IS NULL) = (process_boot_id IS NULL) "
                    "AND (process_pid IS NULL) = (process_start_ticks IS NULL)", name="process_whole"),
    Index(None, "created_at"),
    Index(None, "state"),
)

outcomes = Table(
    "outcomes", metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", String(32), ForeignKey("runs.id", ondelete="CASCADE")),
    Column("sequence", Integer, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("probe_key", String(64), nullable=False),
    Column("subject", Text, nullable=False),
    Column("runtime", String(32), nullable=False),
    Column("device_uuid", Text),
    Column("ok", Integer, nullable=False),
    Column("trusted", Integer, nullable=False),
    Column("taken_at", String(40), nullable=False),
    Column("outcome", Text, nullable=False),
    UniqueConstraint("run_id", "sequence"),
    UniqueConstraint("run_id", "digest"),
    CheckConstraint("ok IN (0, 1) AND trusted IN (0, 1) AND trusted <= ok", name="flags"),
    CheckConstraint("(device_uuid IS NULL) = (ok = 0)", name="device_known"),
    Index(None, "device_uuid", "probe_key"),
)

actuals = Table(
    "actuals", metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", String(32), ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("runtime", String(32), nullable=False),
    Column("accelerator", Text, nullable=False),
    Column("step_time_s", Double, nullable=False),
    Column("entered_at", String(40), nullable=False),
    Column("note", Text, nullable=False),
    UniqueConstraint("run_id", "digest"),
    CheckConstraint("step_time_s > 0", name="step_time_positive"),
)
