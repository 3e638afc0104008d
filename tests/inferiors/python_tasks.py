"""A loop with two tasks in a circle of locks, one that waits for them, one for work, one for clients, three for an
answer (one by a generator), one for another task; says "ready", and the addresses of the locks, when all stand."""

import asyncio


async def move(first, second):
    async with first:
        await asyncio.sleep(0)
        async with second:
            pass


async def again(lock):
    async with lock:
        await again(lock)


async def consume(queue):
    await queue.get()


async def stream(answer):
    yield 1
    await answer


async def reads(answer):
    async for _ in stream(answer):
        pass


async def answers(lock, several):
    release = lock.release  # not in its `async with`
    async with getattr(asyncio, "timeout", asyncio.Semaphore)(300):  # Python 3.11 and later
        await several
    release()


async def main():
    one, other = asyncio.Lock(), asyncio.Lock()
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    asyncio.create_task(consume(asyncio.Queue()), name="consumer").done()
    tasks = [asyncio.create_task(move(one, other), name="in"), asyncio.create_task(move(other, one), name="out")]
    asyncio.create_task(again(asyncio.Lock()), name="again").done()
    serving = asyncio.create_task(server.serve_forever(), name="server")
    asyncio.create_task(asyncio.sleep(0)).done()
    answer = asyncio.get_running_loop().create_future()
    asyncio.create_task(reads(answer), name="reads").done()
    for name, several in (
        ("gathers", asyncio.gather(serving, answer)),
        ("waits", asyncio.wait([answer])),
        ("joins", asyncio.wait([serving])),
    ):
        tasks.append(asyncio.create_task(answers(asyncio.Lock(), several), name=name))
    asyncio.get_running_loop().call_later(0.1, lambda: print("ready", hex(id(one)), hex(id(other)), flush=True))
    await asyncio.gather(serving, *tasks)


asyncio.run(main())
