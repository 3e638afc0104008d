"""Python threads of libraries that serve others: queues, executors, schedulers, reporters, event listeners."""

from __future__ import annotations

from gdbext.knowledge.engines.frame_rows import python_thread

RULES = (
    python_thread(
        "python-executor",
        r"_worker",
        r"(concurrent/futures/(thread|process)|distributed/threadpoolexecutor|futures/thread)\.py$",
        "an executor's thread without work",
        "thread pool",
    ),
    python_thread(
        "python-gevent-pool",
        r"wait|get",
        r"gevent/_threading\.py$",
        "gevent threadpool.py: a worker without a task",
        "thread pool",
        under=r"run$|_?worker$",
    ),
    python_thread(
        "python-event-loop",
        r"select|_poll",
        r"(^|/)selectors\.py$",
        "asyncio base_events.py: a loop without events",
        "event loop",
        under=r"_run_once$",
    ),
    python_thread(
        "python-process-pool",
        r"_handle_(results|tasks|workers)|_wait_for_updates|_worker_handler|_task_handler",
        r"(multiprocess(ing)?|billiard)/pool\.py$",
        "CPython pool.py: the three threads of a Pool; the tasks of imap() come from the program's own iterator",
        "pool of processes",
        leaf=False,
        calls="_guarded_task_generation",
    ),
    python_thread(
        "python-process-executor",
        r"wait_result_broken_or_wakeup|_queue_management_worker|_executor_manager_thread|run",
        r"(concurrent/futures/process|loky/process_executor)\.py$",
        "CPython process.py, loky: the manager thread",
        "pool of processes",
        leaf=False,
    ),
    python_thread(
        "python-sharer",
        r"_serve|accepter|serve_forever|_run_server",
        r"multiprocess(ing)?/(resource_sharer|managers)\.py$",
        "CPython multiprocessing",
        "server of shared objects",
        leaf=False,
    ),
    python_thread(
        "python-manager-client",
        r"serve_client",
        r"multiprocess(ing)?/managers\.py$",
        "CPython managers.py: it waits for a client's next call; methods of the program's classes are no part of that",
        "server of shared objects",
    ),
    python_thread(
        "python-tracker",
        r"main|serve_forever|_serve",
        r"(multiprocessing/(resource_tracker|forkserver)|loky/backend/resource_tracker)\.py$",
        "CPython multiprocessing",
        "server",
        leaf=False,
    ),
    python_thread(
        "dask-threads",
        r"_watch(_process|_message_queue)?|_timer_func|_profile\w*|_run_profile",
        r"(distributed/(process|profile|utils_perf)|dask/diagnostics/\w+)\.py$",
        "dask.distributed",
        "Dask background",
        leaf=False,
    ),
    python_thread(
        "execnet-receiver",
        r"_thread_receiver|from_io",
        r"execnet/gateway_base\.py$",
        "execnet gateway_base.py, under pytest-xdist: the thread that reads the messages of the other side",
        "execnet",
        leaf=False,
    ),
    python_thread(
        "ray-threads",
        r"_run|run|listen_error_messages\w*|print_logs|print_(error|worker)_\w+|_periodically_flush\w*|_publish_\w+|_poll_\w+",
        r"ray/(_private/)?(import_thread|profiling|worker|log_monitor|memory_monitor|gcs_pubsub|gc_collect_manager|utils|ray_logging\w*|usage/\w+)\.py$",
        "Ray: threads of a driver or worker that listen",
        "Ray background",
        leaf=False,
    ),
    python_thread(
        "grpc-threads",
        r"channel_spin|_serve|_poll_wrapper|_poll_connectivity|_deliver|_consume_request_iterator|consume_request_iterator|poll_for_events|_process_\w*event\w*",
        r"grpc/(_channel|_server|aio/\w+|_cython/\w+|_utilities|experimental/\w+)\.pyx?(\.\w+)*$",
        "grpcio",
        "gRPC",
        leaf=False,
    ),
    python_thread(
        "python-reporting",
        r"\w+",
        r"(vllm/usage/usage_lib|codecarbon/|comet_ml/|clearml/|neptune/|aim/|swanlab/|pynvml_utils/|gpustat/|opentelemetry/sdk/|ddtrace/|elasticapm/|statsd/|posthog/|segment/)",
        "reporting",
        "reporting",
        leaf=False,
    ),
    python_thread(
        "python-logging-listener",
        r"_monitor|dequeue",
        r"(^|/)logging/handlers\.py$",
        "logging.handlers.QueueListener",
        "logging",
        leaf=False,
    ),
    python_thread(
        "python-scheduler",
        r"_main_loop|_real_main_loop|run_pending",
        r"(apscheduler/|(^|/)schedule/)",
        "APScheduler",
        "scheduler",
        leaf=False,
    ),
    python_thread(
        "torch-test-listener",
        r"_event_listener|_watchdog_loop|_run_watchdog|_watchdog\w*|_heartbeat_loop|_keep_alive\w*|_keepAlive\w*",
        r"torch/(testing/_internal/\w+|distributed/elastic/.*)\.py$",
        "torch: threads of its tests and of elastic",
        "watchdog",
        leaf=False,
    ),
    python_thread(
        "python-prefetch",
        r"prefetch\w*|_prefetch\w*|_data_loading_thread|_fetch_loop|_loader_loop|_background_\w+|background_\w+",
        r"(prefetch\w*|data_?loader\w*|data_utils|dataset\w*|background\w*)(/\w+)*\.py$",
        "loaders that read ahead in a thread",
        "loader thread",
    ),
    python_thread(
        "python-reloader",
        r"run|_run|watch_\w+|_watch\w*|dispatch_events|queue_events",
        r"(watchdog/(observers|utils)|watchfiles/|uvicorn/supervisors)/?",
        "file watchers and reloaders",
        "file watcher",
        leaf=False,
    ),
)

EVENT_LOOP = "event loop"
"""What threads are called in which an event loop of Python waits for events."""

WAITS_FOR_WORK = ("python-queue", "python-wait", "python-mp-queue", "python-selector", "zmq-python")
"""Rules of waits of the standard library and of pyzmq that stand inside a thread without work."""

SERVER_THREAD = (r"_serve$|(\w+\.)?serve_forever$", r"(^|/)(grpc/_server|socketserver)\.py$")
"""The function of a thread that waits for clients, and its file: grpcio _server.py, CPython socketserver.py."""
