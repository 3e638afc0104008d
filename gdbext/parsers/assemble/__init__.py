"""Lines that formats have recognised to processes, threads and frames."""
