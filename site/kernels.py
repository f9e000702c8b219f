"""Kernels that begin as copies of one process, which has loaded what most chapters need: each chapter would take three seconds for that alone."""

import multiprocessing
import os
import signal
import sys

from jupyter_client import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

LOADED = [
    *("ipykernel.kernelapp", "matplotlib.pyplot", "pandas"),
    *("kxbook.plot", "kxbook.search", "tools.warm"),
]
FORKS = "forkserver" in multiprocessing.get_all_start_methods()
# a kernel that has been ended leaves locks behind, which the tracker then removes: no need to tell
sys.warnoptions.append("ignore:resource_tracker:UserWarning")


def serve(argv, environment, folder):
    "Be a kernel, in a session of its own."
    os.setsid()
    os.chdir(folder)
    os.environ.update(environment)
    sys.argv = argv
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import matplotlib
    from ipykernel.kernelapp import launch_new_instance

    if "MATPLOTLIBRC" in environment:  # it may have been loaded for somebody else
        matplotlib.rc_file(environment["MATPLOTLIBRC"])
        matplotlib.rcParams["backend"] = environment["MPLBACKEND"]
    # who started it ends with the build, and it with who started it
    more = [f"--IPKernelApp.parent_handle={os.getppid()}", "--Application.log_level=40"]
    launch_new_instance(argv=[*argv[1:], *more])
    os._exit(0)


class Fork:
    "A process that was forked, with the methods of one that was opened."

    stdin = stdout = stderr = None

    def __init__(self, argv, environment, folder):
        processes = multiprocessing.get_context("forkserver")
        processes.set_forkserver_preload(["__main__", *LOADED])
        self.process = processes.Process(target=serve, args=(argv, environment, folder))
        self.process.daemon = True
        self.process.start()
        self.pid = self.process.pid

    def poll(self):
        return self.process.exitcode

    def wait(self):
        self.process.join()
        return self.process.exitcode

    def send_signal(self, number):
        if self.process.is_alive():
            os.kill(self.pid, number)

    def terminate(self):
        self.process.terminate()

    def kill(self):
        self.process.kill()


class Provisioner(LocalProvisioner):
    "Forks where a process would be opened."

    async def launch_kernel(self, cmd, **options):
        self.process = Fork(cmd[2:], dict(options["env"]), options["cwd"])
        self.pid, self.pgid = self.process.pid, None
        return self.connection_info


class Kernels(AsyncKernelManager):
    "Kernels that are forked, where the system can."

    async def _async_pre_start_kernel(self, **options):
        if self.provisioner is None and FORKS:
            self.provisioner = Provisioner(
                kernel_id=self.kernel_id or "", kernel_spec=self.kernel_spec, parent=self
            )
        return await super()._async_pre_start_kernel(**options)
