/* The shared segment of the SHM transport: a file nccl-XXXXXX that is extended with ftruncate and then written, so that a
 * full /dev/shm shows as SIGBUS in the middle of the write. DEMO_SHM_ROOM simulates the full file system: the bytes that
 * fit. The file loses its name at once, so nothing is left behind.
 */
#include "comm.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

NCCL_FRAME ncclResult_t ncclShmOpen(char* shmPath, size_t shmSize, void** shmPtr) {
    const char* room = getenv("DEMO_SHM_ROOM");
    const int fd = mkstemp(shmPath);
    if (fd < 0)
        return ncclSystemError;
    unlink(shmPath);
    if (ftruncate(fd, static_cast<off_t>(shmSize)))
        return ncclSystemError;
    *shmPtr = mmap(nullptr, shmSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (*shmPtr == MAP_FAILED || (room && ftruncate(fd, atol(room))))
        return ncclSystemError;
    close(fd);
    memset(*shmPtr, 0, room ? shmSize : 4096);  // the healthy demo does not need the memory
    return ncclSuccess;
}
