"""The first tables: runs, outcomes, actuals."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the three tables and their indexes."""
    _create_runs()
    _create_outcomes()
    _create_actuals()


def downgrade() -> None:
    """Drop everything."""
    for table in ("actuals", "outcomes", "runs"):
        op.drop_table(table)


def _create_runs() -> None:
    unfinished = "state IN ('queued', 'running')"
    op.create_table(
        "runs",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("finished_at", sa.String(40)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("task", sa.String(16), nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in (
            "owner", "host", "note", "error", "document", "options", "workload", "devices", "versions", "progress")),
        sa.Column("recommendation", sa.Text),
        sa.Column("best", sa.Text, nullable=False),
        sa.Column("step_time_s", sa.Double),
        sa.Column("cancel_asked_at_s", sa.Double),
        sa.Column("beat_at_s", sa.Double, nullable=False),
        sa.Column("beat_boot_id", sa.String(64), nullable=False),
        sa.Column("beat_monotonic_s", sa.Double, nullable=False),
        sa.Column("process_host", sa.Text),
        sa.Column("process_boot_id", sa.String(64)),
        sa.Column("process_pid", sa.Integer),
        sa.Column("process_start_ticks", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'cancelled', 'interrupted')", name="ck_runs_state_known"),
        sa.CheckConstraint(f"(finished_at IS NULL) = ({unfinished})", name="ck_runs_finished_with_time"),
        sa.CheckConstraint(
            "(process_pid IS NULL) = (process_host IS NULL) AND (process_pid IS NULL) = (process_boot_id IS NULL) "
            "AND (process_pid IS NULL) = (process_start_ticks IS NULL)", name="ck_runs_process_whole"),
    )
    op.create_index("ix_runs_created_at", "runs", ["created_at"])
    op.create_index("ix_runs_state", "runs", ["state"])


def _create_outcomes() -> None:
    op.create_table(
        "outcomes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("run_id", sa.String(32)),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("probe_key", sa.String(64), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("runtime", sa.String(32), nullable=False),
        sa.Column("device_uuid", sa.Text),
        sa.Column("ok", sa.Integer, nullable=False),
        sa.Column("trusted", sa.Integer, nullable=False),
        sa.Column("taken_at", sa.String(40), nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outcomes"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_outcomes_run_id", ondelete="CASCADE"),
        sa.UniqueConstraint("run_id", "sequence", name="uq_outcomes_run_id_sequence"),
        sa.UniqueConstraint("run_id", "digest", name="uq_outcomes_run_id_digest"),
        sa.CheckConstraint("ok IN (0, 1) AND trusted IN (0, 1) AND trusted <= ok", name="ck_outcomes_flags"),
        sa.CheckConstraint("(device_uuid IS NULL) = (ok = 0)", name="ck_outcomes_device_known"),
    )
    op.create_index("ix_outcomes_device_uuid_probe_key", "outcomes", ["device_uuid", "probe_key"])


def _create_actuals() -> None:
    op.create_table(
        "actuals",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("run_id", sa.String(32), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("runtime", sa.String(32), nullable=False),
        sa.Column("accelerator", sa.Text, nullable=False),
        sa.Column("step_time_s", sa.Double, nullable=False),
        sa.Column("entered_at", sa.String(40), nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_actuals"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_actuals_run_id", ondelete="CASCADE"),
        sa.UniqueConstraint("run_id", "digest", name="uq_actuals_run_id_digest"),
        sa.CheckConstraint("step_time_s > 0", name="ck_actuals_step_time_positive"),
    )
