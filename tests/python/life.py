"""The end of things: closed objects, threads, fork, interrupts, the end of the process.

SPDX-License-Identifier: Apache-2.0
"""
import os
import unittest

import coxswain as cox
import numpy as np

import support
from support import INVERT, SLOW, run_script

A = np.zeros((64, 64), np.uint32)


class Closing(unittest.TestCase):
    def test_a_closed_runtime_or_session_says_so(self):
        runtime = support.open_runtime()
        session = runtime.session(INVERT, shape=A.shape)
        session.close()
        session.close()
        for call in (lambda: session.run(A), lambda: session.submit(A), lambda: session.info, session.cancel):
            with self.assertRaisesRegex(RuntimeError, "the session is closed"):
                call()
        other = runtime.session(INVERT, shape=A.shape)
        runtime.close()
        runtime.close()
        with self.assertRaisesRegex(RuntimeError, "is closed"):
            other.run(A)
        for call in (lambda: runtime.run(INVERT, A), lambda: runtime.devices, lambda: runtime.empty(4),
                     lambda: runtime.session(INVERT, shape=A.shape)):
            with self.assertRaisesRegex(RuntimeError, "the runtime is closed"):
                call()
        self.assertIn("closed", repr(runtime) + repr(session))

    def test_closing_waits_for_frames_and_leaving_by_an_exception_cancels_them(self):
        with support.open_runtime() as runtime:
            session = runtime.session(SLOW, shape=A.shape, in_flight=4)
            frames = [session.submit(A) for _ in range(4)]
            session.close()
            self.assertEqual([frame.exception() for frame in frames], [None] * 4)
            with self.assertRaises(KeyError):
                with runtime.session(SLOW, shape=(512, 512), in_flight=8) as session:
                    frames = [session.submit(np.zeros((512, 512), np.uint32)) for _ in range(8)]
                    raise KeyError
            self.assertTrue(all(frame.done() for frame in frames))
            self.assertTrue(all(isinstance(frame.exception(), (cox.CancelledError, type(None))) for frame in frames))

    def test_a_runtime_that_cannot_be_made(self):
        with self.assertRaises(cox.NotFoundError) as caught:
            cox.Runtime("no such device")
        self.assertIn("no such device", caught.exception.log[0])
        with self.assertRaisesRegex(TypeError, "cox_runtime_params has no field 'device'"):
            cox.Runtime(device="cpu")


class Processes(unittest.TestCase):
    def check(self, text, expected, status=0):
        found, out, err = run_script(text)
        if found == 77:
            self.skipTest(out)
        self.assertEqual((found, out.strip()), (status, expected), err)
        return err

    def test_the_process_ends_with_frames_under_way(self):
        self.check(
            """
            runtime = open_runtime()
            session = runtime.session(SLOW, shape=(512, 512), in_flight=8)
            frames = [session.submit(np.zeros((512, 512), np.uint32)) for _ in range(8)]
            print("ends")
            """,
            "ends",
        )

    def test_the_process_ends_with_a_thread_inside(self):
        self.check(
            """
            import threading, time
            runtime = open_runtime()
            session = runtime.session(SLOW, shape=(256, 256))
            inside = threading.Event()
            def run():
                while True:
                    inside.set()
                    session.run(np.zeros((256, 256), np.uint32))
            threading.Thread(target=run, daemon=True).start()
            inside.wait()
            print("ends")
            """,
            "ends",
        )

    def test_objects_that_were_forgotten_are_freed(self):
        self.check(
            """
            import gc, threading
            for _ in range(3):
                runtime = open_runtime()
                session = runtime.session(INVERT, shape=(8, 8))
                session.submit(np.zeros((8, 8), np.uint32))
                thread = runtime._core.hub._thread
                del runtime, session
                gc.collect()
                thread.join(300)
                print(thread.is_alive())
            """,
            "False\nFalse\nFalse",
        )

    def test_a_runtime_may_be_closed_by_a_frames_callback(self):
        self.check(
            """
            import threading
            runtime = open_runtime()
            session = runtime.session(INVERT, shape=(8, 8))
            thread = runtime._core.hub._thread
            a = np.zeros((8, 8), np.uint32)
            later = []
            def close(_):
                later.append(session.submit(a))
                try:
                    later[0].result()
                except RuntimeError as problem:
                    print(problem)
                runtime.close()
            session.submit(a).add_done_callback(close)
            thread.join(600)
            print(thread.is_alive(), session._closed, later[0].result()[0, 0])
            """,
            "coxswain: a function of add_done_callback must not wait for another frame\nFalse True 4294967295",
        )

    def test_an_interrupt_ends_a_wait(self):
        self.check(
            """
            import os, signal
            gate = Gate()
            def interrupt(buffers, constants):
                os.kill(os.getpid(), signal.SIGINT)
                gate(buffers, constants)
            runtime = open_runtime()
            session = runtime.session(cox.Pass(INVERT, done=interrupt), shape=(64, 64), warmup="none")
            try:
                session.submit(np.zeros((64, 64), np.uint32)).result()
            except KeyboardInterrupt:
                print("interrupted")
                gate.open.set()
            """,
            "interrupted",
        )

    def test_a_child_of_fork_is_told_to_spawn(self):
        err = self.check(
            """
            import os, sys
            runtime = open_runtime()
            session = runtime.session(INVERT, shape=(64, 64))
            array = runtime.empty((64, 64), np.uint32)
            child = os.fork()
            for call in (lambda: session.run(array), lambda: session.submit(array), lambda: cox.Runtime("cpu")):
                if child == 0:
                    try:
                        call()
                        print("no error")
                    except cox.InvalidError as problem:
                        print("spawn" in str(problem), problem.status)
            sys.stdout.flush()
            if child == 0:
                sys.exit()
            print(os.waitpid(child, 0)[1], (session.run(array) == 0xFFFFFFFF).all())
            """,
            "True -1\nTrue -1\nTrue -1\n0 True",
        )
        self.assertNotIn("Traceback", err)

    def test_spawned_processes_work(self):
        self.check(
            """
            import concurrent.futures, multiprocessing
            import spawned
            if __name__ == "__main__":
                runtime = open_runtime()
                with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                    print(pool.submit(spawned.work, 5).result())
            """,
            "4294967290",
        )

    def test_an_error_in_a_done_callback_does_not_end_the_thread(self):
        err = self.check(
            """
            runtime = open_runtime()
            session = runtime.session(INVERT, shape=(8, 8))
            a = np.zeros((8, 8), np.uint32)
            session.submit(a).add_done_callback(lambda _: 1 / 0)
            print(session.submit(a).result()[0, 0])
            runtime.close()
            """,
            "4294967295",
        )
        self.assertIn("ZeroDivisionError", err)


if __name__ == "__main__":
    support.main()
