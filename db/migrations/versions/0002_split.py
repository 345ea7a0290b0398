"""Runs keep what was planned over several pools, and what came of it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; runs from before have none."""
    op.add_column("runs", sa.Column("split", sa.Text))


def downgrade() -> None:
    """Drop it with what it holds."""
    op.drop_column("runs", "split")
