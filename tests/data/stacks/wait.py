import faulthandler, threading, time, sys
def consume(queue_lock):
    with queue_lock:
        pass
def serve(queue_lock):
    consume(queue_lock)
lock = threading.Lock(); lock.acquire()
helper = threading.Thread(target=serve, args=(lock,), name="helper", daemon=True); helper.start()
while not sys._current_frames().get(helper.ident): time.sleep(0.01)
faulthandler.dump_traceback(file=open("faulthandler.txt", "w"), all_threads=True)
print("ready", flush=True)
threading.Event().wait()
