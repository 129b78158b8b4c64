"""A storm (`./run storm`): runs that are killed, stopped, damaged and starved must end as if nothing had happened."""
