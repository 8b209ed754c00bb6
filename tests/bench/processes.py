"""Servers and clients as processes: starts them, asks them, reads what the kernel says of them."""
import json
import pathlib
import re
import signal
import subprocess
import threading


class Server:
    """A server on a free loopback port, or on a Unix socket, until the end of a `with`."""

    def __init__(self, program, *arguments, listen="127.0.0.1:0"):
        self.program = program
        self.arguments = [str(program), *arguments, f"--listen={listen}"]
        self.counters = {}

    def __enter__(self):
        self.process = subprocess.Popen(
            self.arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if found := re.search(r"listening on (\S+)", line):
                self.address = found[1]
                break
        else:
            raise RuntimeError(f"{self.arguments} did not start:\n{''.join(lines)}")
        # A log that nobody reads would block the server.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        output = self.process.stdout.read()
        self.process.wait()
        if output.startswith("{"):
            self.counters = json.loads(output)

    def resident_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024

    def processor_ticks(self):
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        return sum(int(field) for field in stat.rsplit(")", 1)[1].split()[11:13])


def start_client(cli, server, *arguments):
    return subprocess.Popen(
        [str(cli), "bench", f"--target={server.address}", "--output=json", "--uniform", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_client(cli, server, *arguments):
    """One run of `maxsimd-cli bench`: its JSON.  Every call must have succeeded."""
    client = start_client(cli, server, *arguments)
    output, errors = client.communicate()
    if client.returncode != 0:
        raise RuntimeError(f"{client.args}: {errors}")
    result = json.loads(output)
    if result["failed"] > 0:
        raise RuntimeError(f"{client.args}: {result['errors']}")
    return result


def machine():
    """The processor's name and cores, and the GPU's name where there is one."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*:\s*(.*)", info)
    cores = len(re.findall(r"^processor\s*:", info, re.MULTILINE))
    parts = [f"{name[1] if name else 'unknown processor'}, {cores} cores"]
    try:
        gpus = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
                              capture_output=True, text=True, check=True).stdout.split("\n")
        parts.append(gpus[0])
    except (OSError, subprocess.CalledProcessError):
        pass
    return ", ".join(parts)
