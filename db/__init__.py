"""The memory of Tandem: SQLAlchemy tables, Alembic migrations and one store.

Only this room imports SQLAlchemy, and only through it does anything reach the database file. It knows the words of
`core/` and nothing of what they mean.
"""

from db.store import Store

__all__ = ["Store"]
