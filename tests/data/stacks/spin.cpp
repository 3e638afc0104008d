#include <pthread.h>
#include <mutex>
#include <unistd.h>
#include <poll.h>
namespace demo {
struct Comm { int rank; };
template <typename T> struct Ring { void wait(Comm *comm, std::size_t count, T seed); };
std::mutex gate;
template <typename T> void Ring<T>::wait(Comm *comm, std::size_t count, T) { std::lock_guard<std::mutex> hold(gate); (void)comm; (void)count; }
static inline __attribute__((always_inline)) void launch(Comm *comm, std::size_t count) { Ring<float> ring; ring.wait(comm, count, 1.0f); }
}
namespace { void *helper(void *) { poll(nullptr, 0, -1); return nullptr; } }
int main() {
  demo::Comm comm{3};
  demo::gate.lock();
  pthread_t a, b;
  pthread_create(&a, nullptr, helper, nullptr); pthread_setname_np(a, "cuda-EvtHandlr");
  auto work = [](void *p) -> void * { demo::launch(static_cast<demo::Comm *>(p), 1024); return nullptr; };
  pthread_create(&b, nullptr, work, &comm);
  pthread_join(b, nullptr);
}
