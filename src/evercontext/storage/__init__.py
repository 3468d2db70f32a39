"""The one database: connection, transaction, migrations, recovery."""
