"""Child processes: the only room that starts one."""
