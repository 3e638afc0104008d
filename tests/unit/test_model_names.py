"""bare_name against names that demanglers of gdb, lldb and elfutils print."""

from __future__ import annotations

import random

import pytest

from gdbext.model.text.function_names import LONGEST, bare_name


@pytest.mark.parametrize(
    ("demangled", "bare"),
    [
        ("poll", "poll"),
        ("", ""),
        ("ns::Class::method(int, char const*) const", "ns::Class::method"),
        ("ns::Class::~Class()", "ns::Class::~Class"),
        ("std::this_thread::yield ()", "std::this_thread::yield"),
        ("ns::f(int) (this=0x1, x=...)", "ns::f"),
        ("void ns::launch<float, 4>(float*, int)", "ns::launch<float, 4>"),
        ("unsigned long const& ns::least<int>(int)", "ns::least<int>"),
        ("std::enable_if<(1 > 0), int>::type pick<int>(int)", "pick<int>"),
        ("decltype (forward<int>(1)) call<int>(int&&)", "call<int>"),
        ("run<(bool)1, void (*)(int)>(int)", "run<(bool)1, void (*)(int)>"),
        ("wait<Engine::Wait(Var*)::__lambda1>(Lock<Mutex> &)", "wait<Engine::Wait(Var*)::__lambda1>"),
        ("Deleter::operator()(ncclComm*) const", "Deleter::operator()"),
        ("operator new(unsigned long)", "operator new"),
        ("operator delete[](void*)", "operator delete[]"),
        ("ns::operator<< <char>(std::ostream&, char)", "ns::operator<< <char>"),
        ("bool ns::operator< <int>(int, int)", "ns::operator< <int>"),
        ("Ptr<int>::operator->() const", "Ptr<int>::operator->"),
        ("Guard::operator bool() const", "Guard::operator bool"),
        ("Guard::operator char const*() const", "Guard::operator char const*"),
        ("f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda(int)#1}::operator()"),
        ("A::f(int) const::{lambda()#2}::operator()() const", "A::f::{lambda()#2}::operator()"),
        ("A::f()::<lambda(int)>::operator()(int) const", "A::f::<lambda(int)>::operator()"),
        ("(anonymous namespace)::worker(void*)", "(anonymous namespace)::worker"),
        ("void (anonymous namespace)::worker<int>(void*)", "(anonymous namespace)::worker<int>"),
        ("ns::(anonymous namespace)::Impl::go()", "ns::(anonymous namespace)::Impl::go"),
        ("text[abi:cxx11](int)", "text"),
        ("ns::text[abi:cxx11]::size() const", "ns::text::size"),
        ("run(int) [clone .cold]", "run"),
        ("run [clone .part.0]", "run"),
        ("wait_impl.isra.0", "wait_impl"),
        ("bcast.constprop.0.cold", "bcast"),
        ("memcpy@plt", "memcpy"),
        ("pthread_cond_wait@@GLIBC_2.3.2", "pthread_cond_wait"),
        ("void (*choose(int))(char)", "choose"),
        ("int (&table<3>())[3]", "table<3>"),
        ("non-virtual thunk to ns::A::f()", "ns::A::f"),
        ("net/http.(*conn).serve(...)", "net/http.(*conn).serve"),
        ("<T as core::ops::FnOnce>::call(int)", "<T as core::ops::FnOnce>::call"),
        (
            "<std[c29fa2d9dbea2b0e]::sys::sync::condvar::futex::Condvar>::wait",
            "std::sys::sync::condvar::futex::Condvar::wait",
        ),
        (
            "rayon_core[e20b117c96b94ca0]::registry::in_worker::<rayon_core[e20b117c96b94ca0]::join::join<(), u8>, u8>",
            "rayon_core::registry::in_worker",
        ),
        (
            "<std[c29fa2d9dbea2b0e]::thread::local::LocalKey<rayon_core[e20b117c96b94ca0]::latch::LockLatch>>::with::<u8>",
            "std::thread::local::LocalKey<rayon_core::latch::LockLatch>::with",
        ),
        (
            "<engine[0123456789abcdef]::Queue<fn() -> u8>>::pop::{closure#0}",
            "engine::Queue<fn() -> u8>::pop::{closure#0}",
        ),
        (
            "<alloc[12ca63220423dfc2]::vec::Vec<u8> as core[a9090a07a7fa7517]::ops::Drop>::drop",
            "<alloc::vec::Vec<u8> as core::ops::Drop>::drop",
        ),
        ("<engine[0123456789abcdef]::Queue<u8>::pop", "<engine::Queue<u8>::pop"),
        ("engine[0123456789abcdef]::odd>::name", "engine::odd>::name"),
        ("<module>", "<module>"),
        ("<signal handler called>", "<signal handler called>"),
        ("cut(std::vector<int, std::allo", "cut"),
        ("cut<std::vector<int, std::allo", "cut<std::vector<int, std::allo"),
        ("_nv031303cupti", "_nv031303cupti"),
        ("??", "??"),
        ("()", "()"),
    ],
)
def test_the_name_alone_remains(demangled: str, bare: str) -> None:
    assert bare_name(demangled) == bare


def test_a_bare_name_stays_as_it_is() -> None:
    for name in ("a::b<c (*)(d)>::operator()", "f::{lambda(int)#1}::operator()", "(anonymous namespace)::f"):
        assert bare_name(name) == name


def test_no_text_raises_and_nothing_grows() -> None:
    parts = ["<", ">", "(", ")", "[abi:x]", "{", "}", "::", " ", "operator", "->", "f", "const", "(*", "decltype"]
    draw = random.Random(5)
    for _ in range(3000):
        text = "".join(draw.choice(parts) for _ in range(draw.randrange(30)))
        assert len(bare_name(text)) <= len(text)


@pytest.mark.parametrize("part", ["<", "(", ")", "(*", ".part", " const", "f()::", "operator(", "[abi:", "<)"])
def test_a_hostile_name_is_cut(part: str) -> None:
    assert len(bare_name(part * 200_000)) <= LONGEST
