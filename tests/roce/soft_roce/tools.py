"""What the lab's parts share: finding programs, ending with us, and cleaning up behind us."""
import os
import shutil
import subprocess


class Skip(Exception):
    """The lab cannot run here; the message says what is missing and what to do."""


def find(program, package):
    """The path of a program, or Skip. What an ordinary user's PATH leaves out is looked at too."""
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Skip(f"{program} is missing; install it with: apt-get install {package}")
    return path


def dying_with_us(command):
    """The command, made such that the kernel kills it when we end, even by SIGKILL."""
    return [find("setpriv", "util-linux"), "--pdeathsig", "KILL", *command]


class Cleaner:
    """A shell that waits for our end and then runs `script`: SIGKILL leaves us no other chance to clean up."""

    def __init__(self, script, *arguments):
        self._shell = subprocess.Popen(["/bin/sh", "-c", f"read -r _; {script}", "sh", *arguments],
                                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._shell.stdin.close()
        self._shell.wait()
