"""What `--json` shows of each type, as rows: key, field, how it is turned."""
