//! `endmark mcp wrap`: between an MCP client and a server, over standard input and output.
//!
//! A proxy of lines rather than a client and a server of a library's: whatever it does not know passes byte for byte, also
//! what the protocol does not have yet. A thread passes on what the client says, this one what the server says.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use endmark_context::cap::{Limits, Way};
use endmark_process::Keeper as Group;
use serde_json::json;

use super::arguments::Wrap;
use super::session::{Awaited, FromClient, Session};
use super::{read_tool, results};
use crate::answer::Outcome;
use crate::commands::cap::{Asked, Keeper, for_hook};
use crate::config::Settings;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::terminal::Terminal;

/// Claude Code refuses results of more than 25,000 tokens; dense text has two and a half characters to one.
const CLIENT_LIMIT_CHARS: u64 = 60_000;
/// The longest message.
const MESSAGE_LIMIT_BYTES: u64 = 256 << 20;
/// How long a server may take to end by itself once its client is gone.
const GRACE: Duration = Duration::from_secs(5);
/// How long what a server said last may take to be read once it has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// What both directions share.
struct Shared {
    session: Mutex<Session>,
    output: Mutex<io::Stdout>,
    is_client_gone: Mutex<bool>,
}

impl Shared {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the client a message, whole: both directions do.
    fn send(&self, line: &[u8]) -> io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(line)?;
        output.flush()
    }

    fn is_client_gone(&self) -> MutexGuard<'_, bool> {
        self.is_client_gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the server until the client or the server is gone.
pub(super) fn run(context: &Context, arguments: &Wrap) -> Result<Outcome, CommandError> {
    if context.terminal.json {
        let message =
            "standard output is where the server speaks to its client, and has no room for an envelope";
        return Err(CommandError::input("bad_usage", message, "Leave out `--json`."));
    }
    let effective = context.configuration(arguments.store.overrides())?;
    let settings = effective.settings;
    let mut asked = for_hook(&arguments.most, arguments.max_items, CLIENT_LIMIT_CHARS, &settings.cap)?;
    asked.limits.way = Way::Tool;
    let failed = |error: io::Error| CommandError::Upstream {
        message: format!("the MCP server `{}` cannot be started: {error}", name(arguments)),
        hint: Some("What stands behind `--` is run as it is, without a shell.".to_owned()),
    };
    // It ends the server and whatever that has started when this process is gone, however that came about.
    let group = Group::start().map_err(failed)?;
    let mut server = started(arguments, &group).map_err(failed)?;
    let (input, output) = (server.stdin.take(), server.stdout.take());
    // A process that the server has started may hold its output, and be there for ever: the group ends with the server.
    let (ended, status) = mpsc::channel();
    thread::spawn(move || {
        let status = server.wait().ok();
        thread::sleep(DRAIN);
        drop(group);
        // Nobody listens where the client went away first.
        let _ = ended.send(status);
    });
    let shared = Arc::new(Shared {
        session: Mutex::default(),
        output: Mutex::new(io::stdout()),
        is_client_gone: Mutex::new(false),
    });
    if let Some(input) = input {
        let (shared, settings, limits) = (Arc::clone(&shared), settings.clone(), asked.limits.clone());
        thread::spawn(move || from_client(input, &shared, &settings, &limits));
    }
    let mut keeper = Keeper::new(&settings);
    let passed = output.map_or(Ok(()), |output| {
        let mut passing =
            Passing { shared: &shared, asked: &asked, keeper: &mut keeper, terminal: context.terminal };
        passing.pass(BufReader::new(output))
    });
    keeper.close();
    passed?;
    if *shared.is_client_gone() {
        return Ok(Outcome::Streamed(Exit::Success));
    }
    // One that has closed its output and goes on is ended with the group, when this process is gone.
    let status = status.recv_timeout(GRACE).ok().flatten();
    let how = status.map_or_else(|| "closed its output".to_owned(), |status| format!("ended ({status})"));
    let message = format!("the MCP server `{}` {how}", name(arguments));
    for id in shared.session().unanswered() {
        let error = json!({"code": -32_000, "message": message});
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n");
        shared.send(line.as_bytes()).map_err(CommandError::Write)?;
    }
    Err(CommandError::Upstream { message, hint: None })
}

fn name(arguments: &Wrap) -> String {
    arguments.server.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
}

fn started(arguments: &Wrap, group: &Group) -> io::Result<Child> {
    let (program, rest) =
        arguments.server.split_first().ok_or_else(|| io::Error::other("no command is named"))?;
    Command::new(program)
        .args(rest)
        .process_group(group.group())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

/// Passes on what the client says, until it says no more.
fn from_client(mut server: ChildStdin, shared: &Shared, settings: &Settings, limits: &Limits) {
    let mut client = BufReader::new(io::stdin());
    let mut line = Vec::new();
    while matches!(message(&mut client, &mut line), Ok(true)) {
        let said = shared.session().asked(&line);
        let sent = match said {
            FromClient::Pass => server.write_all(&line).and_then(|()| server.flush()),
            FromClient::Read { id, arguments } => {
                let answer = read_tool::answer(&id, arguments.as_deref(), settings, limits);
                shared.send(format!("{answer}\n").as_bytes())
            }
        };
        if sent.is_err() {
            // The server is gone: who listens to it says so.
            return;
        }
    }
    *shared.is_client_gone() = true;
    drop(server);
    thread::sleep(GRACE);
    // Still there: the group's keeper ends what is in it.
    std::process::exit(i32::from(Exit::Success.code()));
}

/// The direction from the server to the client.
struct Passing<'a> {
    shared: &'a Shared,
    asked: &'a Asked,
    keeper: &'a mut Keeper,
    terminal: Terminal,
}

impl Passing<'_> {
    fn pass(&mut self, mut server: impl BufRead) -> Result<(), CommandError> {
        let mut line = Vec::new();
        let failed = |error: io::Error| CommandError::Upstream {
            message: format!("the MCP server cannot be understood: {error}"),
            hint: None,
        };
        while message(&mut server, &mut line).map_err(failed)? {
            let awaited = self.shared.session().answered(&line);
            let changed = awaited.and_then(|awaited| self.changed(awaited, &line));
            self.shared.send(changed.as_deref().unwrap_or(&line)).map_err(CommandError::Write)?;
        }
        Ok(())
    }

    /// What takes the place of an answer; none where it passes as it is.
    fn changed(&mut self, awaited: Awaited, line: &[u8]) -> Option<Vec<u8>> {
        let unchanged = |error: String| {
            self.terminal.warn(&format!("an answer of the MCP server passes as it is: {error}"));
            None
        };
        match awaited {
            Awaited::Other => None,
            Awaited::Tools => match results::with_read_tool(line) {
                Ok(Some(line)) => {
                    self.shared.session().offered();
                    Some(line)
                }
                Ok(None) => unchanged(format!("it has a tool `{}` of its own", read_tool::NAME)),
                Err(error) => unchanged(error.to_string()),
            },
            Awaited::Result => match results::capped(line, self.asked, self.keeper) {
                Ok(changed) => changed.map(|changed| {
                    for warning in &changed.warnings {
                        self.terminal.warn(&warning.message);
                    }
                    changed.line
                }),
                Err(error) => unchanged(error.to_string()),
            },
        }
    }
}

/// Reads the next message with its line break; false at the end.
fn message(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let length = from.by_ref().take(MESSAGE_LIMIT_BYTES).read_until(b'\n', line)?;
    if length as u64 == MESSAGE_LIMIT_BYTES && line.last() != Some(&b'\n') {
        return Err(io::Error::other(format!("a message has more than {MESSAGE_LIMIT_BYTES} bytes")));
    }
    Ok(length > 0)
}
