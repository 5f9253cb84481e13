//! Ends a process group when its supervisor has ended, even if the supervisor was killed. (CG-4)
//!
//! A keeper is a small process that leads the group and waits until a pipe is closed. Only the supervisor has
//! the other end of the pipe, and the operating system closes it however the supervisor ends. The keeper then
//! asks the processes of the group to end, and kills them two seconds later. Commands are started directly in
//! the keeper's group, so they never run outside of it. While the keeper lives, its process id is not reused.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

/// Waits until its input ends, and then ends its group. It ignores the signals with which it asks the other
/// processes to end.
const KEEPER_SCRIPT: &str =
    "trap '' HUP INT TERM; while read -r line; do :; done; kill -s TERM 0; sleep 2; kill -s KILL 0";

/// The process that leads a process group. Dropping this value ends the whole group.
#[derive(Debug)]
pub struct GroupKeeper {
    process: Child,
    group_id: i32,
}

impl GroupKeeper {
    /// Starts the leading process of a new group.
    pub fn start() -> io::Result<Self> {
        let mut process = Command::new("/bin/sh")
            .args(["-c", KEEPER_SCRIPT])
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
        Ok(Self { process, group_id: group })
    }

    /// Returns the id of the process group.
    pub fn group_id(&self) -> i32 {
        self.group_id
    }
}

impl Drop for GroupKeeper {
    fn drop(&mut self) {
        // The process id is not reused before the process is waited for.
        if let Some(group) = Pid::from_raw(self.group_id) {
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

    /// Starts a command in the group that ignores requests to end. Waits until it ignores them.
    fn start_stubborn_command(keeper: &GroupKeeper) -> Child {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "trap '' TERM; echo here; while :; do sleep 1; done"])
            .process_group(keeper.group_id())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        child
    }

    #[test]
    fn processes_left_by_a_supervisor_are_killed() {
        let mut keeper = GroupKeeper::start().unwrap();
        let mut child = start_stubborn_command(&keeper);
        assert_eq!(child.try_wait().unwrap(), None);
        // The operating system closes this pipe when the supervisor dies.
        drop(keeper.process.stdin.take());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn dropping_the_keeper_ends_all_processes() {
        let keeper = GroupKeeper::start().unwrap();
        let mut child = start_stubborn_command(&keeper);
        drop(keeper);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
}
