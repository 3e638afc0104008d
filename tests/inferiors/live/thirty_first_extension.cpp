// A part in C++ for Python, thirty-first set: functions that call one of Python, from whatever thread they are called.
#include <map>
#include <mutex>
#include <thread>

// What is needed of the interface of Python, which is the same in all of its versions.
extern "C" {
struct PyThreadState;
struct PyInterpreterState;
PyInterpreterState *PyInterpreterState_Main(void);
PyThreadState *PyThreadState_New(PyInterpreterState *interpreter);
void PyEval_AcquireThread(PyThreadState *state);
void PyEval_ReleaseThread(PyThreadState *state);
}

namespace {

// The states that were made here, by thread. Those that Python has made are not among them.
class States {
public:
    PyThreadState *mine()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        PyThreadState *&state = states_[std::this_thread::get_id()];
        if (!state)
            state = PyThreadState_New(PyInterpreterState_Main());
        return state;
    }

private:
    std::mutex mutex_;
    std::map<std::thread::id, PyThreadState *> states_;
};

States states;

// The lock of the interpreter, for as long as this lives.
class ScopedAcquire {
public:
    ScopedAcquire() : state_(states.mine()) { PyEval_AcquireThread(state_); }
    ~ScopedAcquire() { PyEval_ReleaseThread(state_); }

private:
    PyThreadState *state_;
};

} // namespace

// For each of so many numbers; in a thread in C++ where that is asked for.
extern "C" int for_each(int (*function)(int), int count, int in_thread)
{
    int total = 0;
    auto work = [&] {
        for (int number = 0; number < count; ++number) {
            ScopedAcquire acquire;
            total += function(number);
        }
    };
    if (in_thread)
        std::thread(work).join();
    else
        work();
    return total;
}
