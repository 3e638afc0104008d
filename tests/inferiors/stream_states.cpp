// Streams and events of the stand-in driver in every state, held as engines hold them; threads that wait for them.
//   stream_states            idle, busy, capturing, failed, destroyed streams; pending and done events
//   stream_states lock       a thread also holds the driver's lock, behind the busy stream
//   stream_states none       the runtime is loaded and never used
// The main thread reads stdin and answers with the same line, "mode" with its capture mode.
#include "cuda/cuda_runtime.h"
extern "C" {
#include "cuda/device.h"
}

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <pthread.h>
#include <string>
#include <thread>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static std::atomic<int> waiting{0};
static int entered(int tid)
{
    waiting++;
    return tid;
}

namespace fastertransformer {
struct BaseLayer {
    cudaStream_t stream_;
    virtual ~BaseLayer() {}
};
struct Decoder : BaseLayer {
    int layers_ = 2;
};
struct Gpt : BaseLayer {
    std::unique_ptr<Decoder> decoder_;
    cudaEvent_t done_;
    NOINLINE void synchronize(cudaStream_t stream)
    {
        entered(1);
        cudaStreamSynchronize(stream);
        asm volatile("" ::"r"(this), "r"(stream));
    }
    NOINLINE void wait()
    {
        entered(2);
        cudaEventSynchronize(done_);
        asm volatile("" ::"r"(this));
    }
};
}

// NCCL takes its stream on the stack. This one waits for the driver's default stream: "device".
extern "C" NOINLINE int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op, void *comm, cudaStream_t stream)
{
    entered(3);
    int result = cudaDeviceSynchronize();
    asm volatile("" ::"r"(send), "r"(receive), "r"(count), "r"(stream));
    return result + (type + op) * 0 + !comm * 0;
}

static int never(void *, uint64_t) { return 0; }
static device_kernel endless = {"endless", never, 0, 1};
static void (*stream_is)(cudaStream_t, int, int);

static cudaStream_t made(int capturing, int error)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    stream_is(stream, capturing, error);
    return stream;
}

static void load()
{
    void *unused;
    cudaMalloc(&unused, 4096);
    *(void **)&stream_is = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "standin_stream_is");
}

static void until_asleep(pid_t tid)
{
    char call[16] = "";
    for (std::string path = "/proc/self/task/" + std::to_string(tid) + "/syscall"; strncmp(call, "7 ", 2);) {
        FILE *file = fopen(path.c_str(), "r");
        if (!file || !fgets(call, sizeof call, file))
            call[0] = 0;
        if (file)
            fclose(file);
    }
}

static std::atomic<pid_t> tids[4];
template <typename Body> static void start(int number, Body body)
{
    std::thread([=] {
        tids[number] = gettid();
        body();
    }).detach();
    while (!tids[number]) {
    }
    until_asleep(tids[number]);
}

int main(int argc, char **argv)
{
    std::string what = argc > 1 ? argv[1] : "";
    setenv("DEMO_WAIT", "poll", 1);
    cudaStream_t idle = nullptr, busy = nullptr, capturing = nullptr, failed = nullptr, gone = nullptr, own = (cudaStream_t)2;
    cudaStream_t garbage = (cudaStream_t)0x1230, foreign = nullptr, crashing = nullptr;
    void *kept = nullptr; // a test makes it `crashing`
    cudaEvent_t pending = nullptr, done = nullptr;
    fastertransformer::Gpt gpt;
    if (argc > 2) // another copy of the runtime, never used
        dlopen(argv[2], RTLD_NOW);
    if (what != "none") {
        load();
        idle = made(0, 0);
        busy = made(0, 0);
        failed = made(0, 700);
        gone = made(0, 0);
        if (what != "events")
            capturing = made(1, 0);
        cudaStreamDestroy(gone);
        cudaEventCreate(&done);
        cudaEventRecord(done, idle);
        cudaLaunchKernel((const void *)&endless, {1, 1, 1}, {1, 1, 1}, 0, 0, busy);
        cudaEventCreate(&pending);
        cudaEventRecord(pending, busy);
        foreign = (cudaStream_t)calloc(1, 4096);
        kept = new long(0x10); // what it points to, points nowhere
        gpt.stream_ = busy;
        gpt.done_ = pending;
        gpt.decoder_.reset(new fastertransformer::Decoder);
        gpt.decoder_->stream_ = idle;
        start(1, [&] { gpt.synchronize(gpt.stream_); });
        start(2, [&] { gpt.wait(); });
        start(3, [&] { ncclAllReduce(&gpt, &gpt, 4, 7, 0, &gpt, gpt.stream_); });
    }
    if (what == "lock")
        start(0, [] {
            void *pinned;
            cudaMallocHost(&pinned, 4096);
        });
    printf("ready\n");
    fflush(stdout);
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        int mode = 0;
        if (!strcmp(line, "mode\n") && !cudaThreadExchangeStreamCaptureMode(&mode))
            snprintf(line, sizeof line, "%d\n", mode);
        fputs(line, stdout);
        fflush(stdout);
    }
    return !idle + !busy + !capturing + !failed + !gone + !own + !garbage + !foreign + !crashing + !kept + !pending + !done;
}
