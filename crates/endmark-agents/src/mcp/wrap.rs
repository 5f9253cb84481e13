//! `endmark mcp wrap`: a proxy between an MCP client and a server, over standard input and output.
//!
//! It forwards lines and does not use an MCP library: unknown content passes byte for byte, including future parts of
//! the protocol. One thread forwards the client's messages, and the calling thread those of the server.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use endmark_config::Settings;
use endmark_context::cap::{Limits, ReadMethod};
use endmark_failure::{CommandError, Exit, not_started};
use endmark_process::Keeper as Group;
use endmark_store::{CapRequest, Keeper, size};
use endmark_wire::json::{Kind, Value, without_byte_order_mark};
use serde_json::json;

use super::messages::{self, Incoming, Outline};
use super::session::{MessageDestination, Session};
use super::{read_tool, results};

/// Claude Code rejects results of more than 25,000 tokens. Dense text has two and a half characters per token.
pub const CLIENT_LIMIT_CHARS: u64 = 60_000;
/// Maximum size of a message.
const MESSAGE_LIMIT_BYTES: u64 = 256 << 20;
/// JSON-RPC's codes for an invalid request and for server errors.
const INVALID_REQUEST: i32 = -32_600;
const SERVER_ERROR: i32 = -32_000;
/// How long a server may run after its client has disconnected.
const GRACE: Duration = Duration::from_secs(5);
/// The time to read the last output of an ended server.
const DRAIN: Duration = Duration::from_secs(1);

/// Reports a warning to the user. Both directions use it.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// State shared by both directions.
struct WrapState {
    session: Mutex<Session>,
    output: Mutex<io::Stdout>,
    is_client_gone: Mutex<bool>,
}

impl WrapState {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the client a whole message. Both directions use it.
    fn send(&self, line: &[u8]) -> io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(line)?;
        output.flush()
    }

    fn client_gone(&self) -> MutexGuard<'_, bool> {
        self.is_client_gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the server until the client disconnects or the server ends.
///
/// Returns `Ok` after the client has disconnected. An error means that the server could not be started or ended first.
pub fn wrap(
    command: &[OsString],
    settings: &Settings,
    mut cap_request: CapRequest,
    warn: &Warn,
) -> Result<(), CommandError> {
    cap_request.limits.way = ReadMethod::Tool;
    let failed = |error: io::Error| {
        let body = not_started(&name(command), &error);
        CommandError::Upstream {
            message: format!("the MCP server cannot be started: {}", body.message),
            hint: body.hint,
        }
    };
    // The group ends the server and all its child processes when this process ends for any reason.
    let group = Group::start().map_err(failed)?;
    let mut server = start_server(command, &group).map_err(failed)?;
    let (input, output) = (server.stdin.take(), server.stdout.take());
    // A child process of the server may keep its output open forever, so the group ends with the server.
    let (ended, status) = mpsc::channel();
    thread::spawn(move || {
        let status = server.wait().ok();
        thread::sleep(DRAIN);
        drop(group);
        // Sending fails if the client disconnected first.
        let _ = ended.send(status);
    });
    let shared = Arc::new(WrapState {
        session: Mutex::default(),
        output: Mutex::new(io::stdout()),
        is_client_gone: Mutex::new(false),
    });
    if let Some(input) = input {
        let (shared, settings, limits) = (Arc::clone(&shared), settings.clone(), cap_request.limits.clone());
        let warn = Arc::clone(warn);
        thread::spawn(move || from_client(input, &shared, &settings, &limits, &warn));
    }
    let mut keeper = settings.keeper();
    let passed = output.map_or(Ok(()), |output| {
        let mut passing =
            ServerDirection { shared: &shared, request: &cap_request, keeper: &mut keeper, warn };
        passing.pass(BufReader::new(output))
    });
    keeper.close();
    passed?;
    if *shared.client_gone() {
        return Ok(());
    }
    // A server that closed its output but still runs is ended with the group, when this process ends.
    let status = status.recv_timeout(GRACE).ok().flatten();
    let how = status.map_or_else(|| "closed its output".to_owned(), |status| format!("ended ({status})"));
    let message = format!("the MCP server `{}` {how}", name(command));
    for id in shared.session().take_open() {
        shared.send(error(&id, SERVER_ERROR, &message).as_bytes()).map_err(CommandError::Write)?;
    }
    Err(CommandError::Upstream { message, hint: None })
}

/// Returns an error response to the request with this id.
fn error(id: &str, code: i32, message: &str) -> String {
    let error = json!({"code": code, "message": message});
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n")
}

fn name(command: &[OsString]) -> String {
    command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
}

fn start_server(command: &[OsString], group: &Group) -> io::Result<Child> {
    let (program, rest) = command.split_first().ok_or_else(|| io::Error::other("no command is named"))?;
    Command::new(program)
        .args(rest)
        .process_group(group.group())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

/// Forwards the client's messages until its input ends.
fn from_client(
    mut server: ChildStdin,
    shared: &WrapState,
    settings: &Settings,
    limits: &Limits,
    warn: &Warn,
) {
    let mut client = BufReader::new(io::stdin());
    let mut line = Vec::new();
    while let Ok(incoming @ (Incoming::Message | Incoming::TooLong(_))) =
        messages::read(&mut client, &mut line, MESSAGE_LIMIT_BYTES)
    {
        let sent = match incoming {
            Incoming::TooLong(Outline { id, has_method }) => {
                let message = format!("a message of the client has more than {MESSAGE_LIMIT_BYTES} bytes");
                warn(&format!("{message}, so it was omitted"));
                let id = id.filter(|_| has_method);
                id.map_or(Ok(()), |id| shared.send(error(&id, INVALID_REQUEST, &message).as_bytes()))
            }
            _ => match shared.session().handle_client_message(&line) {
                MessageDestination::Pass => server.write_all(&line).and_then(|()| server.flush()),
                MessageDestination::Read { id, arguments } => {
                    let answer = read_tool::answer(&id, arguments.as_deref(), settings, limits);
                    shared.send(format!("{answer}\n").as_bytes())
                }
            },
        };
        if sent.is_err() {
            // The server has ended; the thread that reads its output reports that.
            return;
        }
    }
    *shared.client_gone() = true;
    drop(server);
    thread::sleep(GRACE);
    // If the server still runs, the group ends it.
    std::process::exit(i32::from(Exit::Success.code()));
}

/// The direction from the server to the client.
struct ServerDirection<'a> {
    shared: &'a WrapState,
    request: &'a CapRequest,
    keeper: &'a mut Keeper,
    warn: &'a Warn,
}

impl ServerDirection<'_> {
    fn pass(&mut self, mut server: impl BufRead) -> Result<(), CommandError> {
        let mut line = Vec::new();
        let failed = |error: io::Error| CommandError::Upstream {
            message: format!("cannot read the output of the MCP server: {error}"),
            hint: None,
        };
        loop {
            match messages::read(&mut server, &mut line, MESSAGE_LIMIT_BYTES).map_err(failed)? {
                Incoming::End => return Ok(()),
                Incoming::TooLong(outline) => {
                    let why = format!("has more than {MESSAGE_LIMIT_BYTES} bytes");
                    self.reject(&outline, &why).map_err(CommandError::Write)?;
                }
                Incoming::Message => self.deliver_message(&line).map_err(CommandError::Write)?,
            }
        }
    }

    /// Sends the client a message of the server, or its replacement.
    fn deliver_message(&mut self, line: &[u8]) -> io::Result<()> {
        // A message must be UTF-8. Clients replace invalid bytes in the same way.
        let text = String::from_utf8_lossy(without_byte_order_mark(line));
        let Ok(message) = Value::parse_str(&text) else {
            // A client that accepts more than strict JSON may still be able to read it.
            if size(&text, self.request.limits.unit) > self.request.limits.most {
                return self.reject(&messages::outline(line), "is too long, and is not JSON");
            }
            return self.shared.send(line);
        };
        let changed = if message.kind() == Kind::Array {
            let of_each: Vec<_> = message.items().map(|message| self.replace_message(message)).collect();
            of_each.iter().any(Option::is_some).then(|| {
                let each = message.items().zip(&of_each);
                let each =
                    each.map(|(message, changed)| changed.as_deref().unwrap_or(message.raw()).trim_end());
                format!("[{}]\n", each.collect::<Vec<_>>().join(","))
            })
        } else {
            self.replace_message(message).map(|mut changed| {
                changed.push('\n');
                changed
            })
        };
        if changed.is_some() && matches!(text, Cow::Owned(_)) {
            (self.warn)("a response of the MCP server is not UTF-8: invalid bytes were replaced by U+FFFD");
        }
        self.shared.send(changed.as_ref().map_or(line, |changed| changed.as_bytes()))
    }

    /// Sends an error to each request whose response cannot be forwarded.
    fn reject(&self, outline: &Outline, why: &str) -> io::Result<()> {
        let message = format!("a response of the MCP server was omitted because it {why}");
        (self.warn)(&message);
        if outline.has_method {
            return Ok(());
        }
        let lost = self.shared.session().take_lost(outline.id.as_deref());
        lost.iter().try_for_each(|id| self.shared.send(error(id, SERVER_ERROR, &message).as_bytes()))
    }

    /// Returns the replacement of a message, or `None` to forward it unchanged.
    fn replace_message(&mut self, message: Value<'_>) -> Option<String> {
        let awaited = self.shared.session().take_answered(message);
        message.field("result").or_else(|| message.field("error"))?;
        let line = message.raw();
        if awaited.as_ref().is_some_and(|awaited| awaited.is_for_tools)
            && message.at("result.tools").is_some()
        {
            message.field("result").into_iter().for_each(|result| self.shared.session().note_tools(result));
            return self.with_read_tool(line);
        }
        // Checked for responses to unknown ids, too: a client may match ids that look different here.
        let tool = awaited.as_ref().and_then(|awaited| awaited.tool.as_deref());
        let is_of_call = awaited.is_none() || tool.is_some();
        let schema = tool.and_then(|tool| self.shared.session().schema(tool));
        match results::cap_message(line.as_bytes(), is_of_call, schema.as_deref(), self.request, self.keeper)
        {
            Ok(changed) => changed.map(|changed| {
                for warning in &changed.warnings {
                    (self.warn)(&warning.message);
                }
                changed.line
            }),
            Err(why) => {
                let message =
                    format!("a result of the MCP server was omitted because it cannot be shortened: {why}");
                (self.warn)(&message);
                let id = awaited.map_or_else(|| "null".to_owned(), |awaited| awaited.id);
                Some(error(&id, SERVER_ERROR, &message).trim_end().to_owned())
            }
        }
    }

    fn with_read_tool(&mut self, line: &str) -> Option<String> {
        let unchanged = |error: String| {
            (self.warn)(&format!("a response of the MCP server was not changed: {error}"));
            None
        };
        match results::with_read_tool(line.as_bytes()) {
            Ok(Some(line)) => {
                self.shared.session().note_offered();
                Some(line)
            }
            Ok(None) => unchanged(format!("the server has its own tool `{}`", read_tool::NAME)),
            Err(error) => unchanged(error.to_string()),
        }
    }
}
