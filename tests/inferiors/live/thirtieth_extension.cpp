// Parts in C++ for Python, thirtieth set: a cache with a lock that the garbage collector walks through, and a client of
// a database.
#include <arpa/inet.h>
#include <mutex>
#include <netinet/in.h>
#include <new>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

// What is needed of the interface of Python, which is the same in all of its versions.
extern "C" {
struct PyObject;
using visitproc = int (*)(PyObject *, void *);

struct PyMethodDef {
    const char *name;
    PyObject *(*method)(PyObject *, PyObject *);
    int flags;
    const char *text;
};
struct PyType_Slot {
    int slot;
    void *function;
};
struct PyType_Spec {
    const char *name;
    int basic_size;
    int item_size;
    unsigned int flags;
    PyType_Slot *slots;
};

PyObject *PyType_FromSpec(PyType_Spec *spec);
PyObject *PyBool_FromLong(long value);
void Py_IncRef(PyObject *object);
void Py_DecRef(PyObject *object);
}

namespace {

constexpr int METHOD_WITH_ONE_ARGUMENT = 8, CLEAR = 51, METHODS = 64, TRAVERSE = 71;
constexpr unsigned int COLLECTED = 1U << 14;

// The newest value, and that only. What Python has of each object comes first; the rest begins as zeros, which is how a
// mutex begins as well.
struct Newest {
    long references;
    PyObject *type;
    std::mutex mutex;
    PyObject *value;
};

Newest *newest(PyObject *self) { return reinterpret_cast<Newest *>(self); }

PyObject *put(PyObject *self, PyObject *value)
{
    std::lock_guard<std::mutex> guard(newest(self)->mutex);
    PyObject *evicted = newest(self)->value;
    Py_IncRef(value);
    newest(self)->value = value;
    if (evicted)
        Py_DecRef(evicted);
    return PyBool_FromLong(evicted != nullptr);
}

int traverse(PyObject *self, visitproc visit, void *words)
{
    std::lock_guard<std::mutex> guard(newest(self)->mutex);
    if (newest(self)->value)
        if (int found = visit(newest(self)->value, words))
            return found;
    return visit(newest(self)->type, words);
}

int clear(PyObject *self)
{
    PyObject *value = newest(self)->value;
    newest(self)->value = nullptr;
    if (value)
        Py_DecRef(value);
    return 0;
}

PyMethodDef methods[] = {
    {"put", put, METHOD_WITH_ONE_ARGUMENT, "Takes a value, and drops the one before."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {METHODS, methods},
    {TRAVERSE, reinterpret_cast<void *>(traverse)},
    {CLEAR, reinterpret_cast<void *>(clear)},
    {0, nullptr},
};

} // namespace

extern "C" PyObject *newest_type()
{
    static PyType_Spec spec = {"thirtieth.Newest", sizeof(Newest), 0, COLLECTED, slots};
    return PyType_FromSpec(&spec);
}

// A connection to a database at this port of this machine.
extern "C" int log_in(int port)
{
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<unsigned short>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(connection, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0)
        return -1;
    return connection;
}

// Sends a statement, and waits for what the database says.
extern "C" int execute(int connection, const char *statement)
{
    std::string line = std::string(statement) + "\n";
    if (write(connection, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        return -1;
    char byte;
    int size = 0;
    while (read(connection, &byte, 1) == 1 && byte != '\n')
        ++size;
    return size;
}
