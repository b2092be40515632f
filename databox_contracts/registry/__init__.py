"""What is published, who depends on it, who must be told: one SQL database, SQLite or PostgreSQL."""
