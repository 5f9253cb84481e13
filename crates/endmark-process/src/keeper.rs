//! Ends a process group after its supervisor ended, even if the supervisor was killed. (CG-4)
//!
//! A keeper is a small process that leads the group and waits for the end of a pipe. Only its supervisor has the
//! other end open, and the system closes it however the supervisor dies. The keeper then asks the processes of the
//! group to end, and kills them two seconds later. Commands are started in the keeper's group, so that they never run
//! outside of it. While the keeper lives, its process id cannot be reused.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

/// Waits for the end of its input, and then ends its group. It ignores the signals that ask the other processes to end.
const SCRIPT: &str =
    "trap '' HUP INT TERM; while read -r line; do :; done; kill -s TERM 0; sleep 2; kill -s KILL 0";

/// The leader of a process group. Dropping it ends the whole group.
#[derive(Debug)]
pub struct Keeper {
    process: Child,
    group: i32,
}

impl Keeper {
    /// Starts a keeper.
    pub fn start() -> io::Result<Self> {
        let mut process = Command::new("/bin/sh")
            .args(["-c", SCRIPT])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let Ok(group) = i32::try_from(process.id()) else {
            let _ = process.kill();
            return Err(io::Error::other("the system returned an invalid process id"));
        };
        Ok(Self { process, group })
    }

    /// Returns the process group id.
    pub fn group(&self) -> i32 {
        self.group
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Its id cannot be reused before the wait.
        if let Some(group) = Pid::from_raw(self.group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// Starts a command in the group that ignores requests to end, and waits until it is ready.
    fn stubborn(keeper: &Keeper) -> Child {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "trap '' TERM; echo here; while :; do sleep 1; done"])
            .process_group(keeper.group())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        child
    }

    #[test]
    fn processes_left_by_a_supervisor_are_killed() {
        let mut keeper = Keeper::start().unwrap();
        let mut child = stubborn(&keeper);
        assert_eq!(child.try_wait().unwrap(), None);
        // The system does this when the supervisor dies.
        drop(keeper.process.stdin.take());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_clean_exit_leaves_no_process() {
        let keeper = Keeper::start().unwrap();
        let mut child = stubborn(&keeper);
        drop(keeper);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
}
