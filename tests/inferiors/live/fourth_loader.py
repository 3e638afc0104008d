"""Loaders of torch that hang, and healthy ones, fourth set: `fourth_loader.py NAME FOLDER`."""

import os
import select

from torch.utils.data import DataLoader, Dataset

from tests.inferiors.live.place import at, run, thread, work_for


class Logged(Dataset):
    """Samples whose reading is logged; `log` opens the log's file, or is the file that the parent has opened."""

    def __init__(self, log):
        self.log = log

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        if callable(self.log):
            self.log = self.log()
        if index == 0:
            at("worker")
        self.log.write(b"%d\n" % index)
        return index


def drain(reading):
    while os.read(reading, 1 << 16):
        pass


def steps(dataset):
    return iter(DataLoader(dataset, batch_size=4, num_workers=1, multiprocessing_context="fork"))


def log_file_copied():
    """A thread is within a long write to the buffered log file when the loader forks: the worker has the file's own
    lock as it was then."""
    reading, writing = os.pipe()
    log = os.fdopen(writing, "wb")
    thread(log.write, bytes(1 << 21))
    select.select([reading], [], [])  # the thread is in write(), and stays until somebody reads
    loader = steps(Logged(log))
    thread(drain, reading)
    at("main")
    next(loader)


def log_file_opened():
    """The twin: the worker opens the log by itself, and the steps go on."""
    reading, writing = os.pipe()
    thread(drain, reading)
    loader = steps(Logged(lambda: os.fdopen(writing, "wb", buffering=512, closefd=False)))
    next(loader)
    at("main")
    for _ in loader:
        work_for(0.02)


PROGRAMS = {"log-file-copied": log_file_copied, "log-file-opened": log_file_opened}

if __name__ == "__main__":
    run(PROGRAMS)
