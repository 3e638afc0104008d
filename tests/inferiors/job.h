/* The job that all ranks of a demo engine belong to: one page of memory they share, and a line to whoever started them.
 *
 * Everything in `struct job_state` is shared by the processes; the simulated devices meet there (collectives), and the
 * launcher reads pids and heartbeats from it (tests/inferiors/demo.py knows the offsets of the first two structs).
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { JOB_RANKS = 64, JOB_COMMS = 8, JOB_BOARD = 8, JOB_RING = 16 };

struct job_rank {
    uint64_t pid;
    uint64_t heartbeat; /* counted up by a thread of the rank as long as it is not stopped */
    uint64_t armed;     /* the rank is about to meet its fate: the next lasting wait is reported */
    uint64_t settled;   /* it was reported */
    uint64_t steps;     /* decoding steps done */
    uint64_t reserved[3];
};

/* One rank's place in a communicator: how many collectives its device has begun, and what the latest were. */
struct job_member {
    uint64_t begun;
    uint64_t signature[JOB_RING];
};

struct job_comm {
    uint64_t hash; /* 0: free */
    struct job_member members[JOB_RANKS];
};

/* A note that one rank pins up and all can read, as MPI_Bcast would carry it. */
struct job_note {
    uint64_t written;
    char bytes[128];
};

struct job_state {
    uint64_t attached;
    uint64_t reserved[7];
    struct job_rank ranks[JOB_RANKS];
    struct job_note board[JOB_BOARD];
    struct job_comm comms[JOB_COMMS];
};

/* Joins the job named by DEMO_STATE (a file), or by what the launcher's environment says, or is a job of its own. */
void job_attach(int rank, int world);
struct job_state *job_state(void);
int job_rank(void);

/* Tells the launcher one event of this rank: a line "EVENT RANK PID" on the pipe DEMO_REPORT, else on stderr. */
void job_report(const char *event);
/* From now on a wait that lasts is the one the launcher waits for. Call in the thread that will block, right before the
 * call that blocks; later calls do nothing. */
void job_arm(void);
/* The armed thread has been waiting for `ns`: reported once, when that is long. UINT64_MAX counts in any thread. */
void job_report_wait(uint64_t ns);
/* For waits to call in their loop. A macro, so that no frame of ours stands on the stacks that are looked at. */
#define JOB_WAITED(ns)                                          \
    do {                                                        \
        if (job_self->armed && !job_self->settled)              \
            job_report_wait(ns);                                \
    } while (0)
extern struct job_rank *job_self;

void job_pin_up(int note, const char *bytes, uint64_t size);
void job_read_note(int note, char *bytes, uint64_t size);
/* The shared slot of the communicator, made by the first who asks. */
struct job_comm *job_find_comm(uint64_t hash);

uint64_t job_now(void); /* monotonic nanoseconds */

#ifdef __cplusplus
}
#endif
