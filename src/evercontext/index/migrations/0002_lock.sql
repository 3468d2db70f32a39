-- Who may index now is said by a lock on a file, which dies with its process.
DROP TABLE leases;
