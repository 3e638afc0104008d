/* The demo engine: one process per rank, started by mpirun, by torchrun-like launchers, or by tests/inferiors/demo.py. */
#include "../job.h"
#include "parallel_gpt.h"
#include "threads.h"

#include <cstring>
#include <getopt.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace fastertransformer;

static int from_environment(std::initializer_list<const char*> names, int otherwise) {
    for (const char* name : names)
        if (const char* value = getenv(name))
            return atoi(value);
    return otherwise;
}

[[noreturn]] static void usage(int status) {
    fprintf(status ? stderr : stdout,
            "usage: engine --hang NAME [--rank N] [--world-size N] [--culprit N] [--wait spin|yield|poll|query]\n"
            "              [--sync stream|event|device|memcpy|query] [--pool-threads N]   |   engine --list\n");
    exit(status);
}

[[noreturn]] static void list() {
    for (int i = 0; i < HANG_COUNT; i++)
        printf("%-26s %s\n", HANGS[i].name, HANGS[i].about);
    exit(0);
}

struct Options {
    Plan plan;
    int pool_threads = 4;
};

static Options parse(int argc, char** argv) {
    static const option names[] = {{"hang", 1, nullptr, 'h'},    {"rank", 1, nullptr, 'r'}, {"world-size", 1, nullptr, 'n'},
                                   {"culprit", 1, nullptr, 'c'}, {"wait", 1, nullptr, 'w'}, {"sync", 1, nullptr, 's'},
                                   {"pool-threads", 1, nullptr, 'p'}, {"list", 0, nullptr, 'l'}, {"help", 0, nullptr, '?'}, {}};
    Options options;
    Plan& plan = options.plan;
    plan.rank = from_environment({"OMPI_COMM_WORLD_RANK", "RANK", "WORLD_RANK", "SLURM_PROCID"}, 0);
    plan.world = from_environment({"OMPI_COMM_WORLD_SIZE", "WORLD_SIZE", "SLURM_NTASKS"}, 1);
    for (int letter; (letter = getopt_long(argc, argv, "", names, nullptr)) != -1;)
        switch (letter) {
        case 'h': plan.hang = find_hang(optarg); break;
        case 'r': plan.rank = atoi(optarg); break;
        case 'n': plan.world = atoi(optarg); break;
        case 'c': plan.culprit = atoi(optarg); break;
        case 's': plan.sync = optarg; break;
        case 'p': options.pool_threads = atoi(optarg); break;
        case 'l': list();
        case 'w':
            if (!strcmp(optarg, "query"))
                plan.sync = "query";
            else
                setenv("DEMO_WAIT", optarg, 1);
            break;
        default: usage(2);
        }
    if (!plan.hang || plan.rank < 0 || plan.rank >= plan.world || plan.world > JOB_RANKS)
        usage(2);
    return options;
}

/* Weights come over a pipe that nobody writes to. */
ENGINE_FRAME static void loadWeights() {
    int ends[2];
    char weights[4096];
    if (pipe(ends) || read(ends[0], weights, sizeof weights) < 0)
        throw std::runtime_error("cannot load the weights");
}

ENGINE_FRAME static void initialiseCommunicators(const Plan& plan, NcclParam& tensor_para, NcclParam& pipeline_para) {
    const bool bus_error = plan.is(Fault::ShmFull) && plan.hits_this_rank();  // reports itself, in the crash handler
    if ((plan.is(Fault::InitAbsent) || plan.is(Fault::InitLate) || plan.is(Fault::ShmFull)) && !bus_error)
        job_arm();
    if (plan.is(Fault::InitLate) && plan.hits_this_rank())
        loadWeights();
    if (bus_error)
        setenv("DEMO_SHM_ROOM", "4194304", 1);
    ftNcclInitialize(tensor_para, plan.rank, plan.world, 0);
    ftNcclInitialize(pipeline_para, plan.rank, plan.world, 1);
}

ENGINE_FRAME static void runModel(const Plan& plan) {
    cudaStream_t stream, gather_stream;
    cublasHandle_t cublas_handle;
    check_cuda_error(cudaStreamCreate(&stream));
    check_cuda_error(cudaStreamCreateWithFlags(&gather_stream, cudaStreamNonBlocking));
    check_cuda_error(cublasCreate_v2(&cublas_handle));
    NcclParam tensor_para, pipeline_para;
    initialiseCommunicators(plan, tensor_para, pipeline_para);
    sync_collectives = plan.hang->sync_collectives;

    const Allocator<AllocatorType::CUDA> allocator;
    cublasMMWrapper cublas_wrapper(cublas_handle, stream);
    RequestSource requests(plan);
    ParallelGpt<float> gpt(BaseLayer<float>(stream, &cublas_wrapper, &allocator), tensor_para, pipeline_para, gather_stream, plan);
    gpt.forward(requests);
}

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    job_attach(options.plan.rank, options.plan.world);
    start_background_threads(options.pool_threads);
    install_crash_handler();
    try {
        check_cuda_error(cudaSetDevice(options.plan.rank % 8));
        const bool healthy = options.plan.is(Fault::CpuBusy) || options.plan.is(Fault::SlowKernels);
        // Ranks that spin get out of the way of everything else, but those that work must get on beside it; the threads
        // started so far, the driver's too, do not.
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), healthy ? 4 : 19);
        runModel(options.plan);
    } catch (const std::exception& error) {
        fprintf(stderr, "rank %d: %s\n", options.plan.rank, error.what());
        return 1;
    }
}
