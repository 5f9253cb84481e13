//! `endmark mcp wrap`: a proxy between an MCP client and a server, over standard input and output.
//!
//! It forwards lines, and uses no MCP library: unknown content is forwarded byte for byte, including future
//! parts of the protocol. One thread forwards messages of the client, and the calling thread forwards those
//! of the server.

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
use endmark_failure::{CommandError, ExitStatus, start_error};
use endmark_process::GroupKeeper as Group;
use endmark_store::{CapRequest, OutputKeeper, size};
use endmark_wire::json::{Kind, Value, without_byte_order_mark};
use serde_json::json;

use super::messages::{self, MessageOutline, ReadMessage};
use super::session::{McpSession, MessageDestination};
use super::{read_tool, results};

/// Claude Code rejects results with more than 25,000 tokens. Dense text has two and a half characters per
/// token.
pub const CLIENT_LIMIT_CHARS: u64 = 60_000;
/// Maximum size of a message in bytes.
const MESSAGE_LIMIT_BYTES: u64 = 256 << 20;
/// JSON-RPC error codes for an invalid request and for server errors.
const INVALID_REQUEST: i32 = -32_600;
const SERVER_ERROR: i32 = -32_000;
/// How long the server may continue after the client has disconnected.
const SERVER_END_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for the last output of a server that has ended.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Shows a warning to the user. Both threads call it.
pub type WarningHandler = Arc<dyn Fn(&str) + Send + Sync>;

/// State that both threads share.
struct WrapState {
    session: Mutex<McpSession>,
    output: Mutex<io::Stdout>,
    is_client_gone: Mutex<bool>,
}

impl WrapState {
    fn session(&self) -> MutexGuard<'_, McpSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a complete message to the client. Both threads call this.
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
/// Returns `Ok` after the client has disconnected. Fails if the server cannot be started, or if it ends
/// first.
pub fn wrap(
    command: &[OsString],
    settings: &Settings,
    mut cap_request: CapRequest,
    warn: &WarningHandler,
) -> Result<(), CommandError> {
    cap_request.limits.way = ReadMethod::Tool;
    let failed = |error: io::Error| {
        let body = start_error(&server_name(command), &error);
        CommandError::Upstream {
            message: format!("the MCP server cannot be started: {}", body.message),
            hint: body.hint,
        }
    };
    // The process group ends the server and its child processes when this process ends for any reason.
    let group = Group::start().map_err(failed)?;
    let mut server = start_server(command, &group).map_err(failed)?;
    let (input, output) = (server.stdin.take(), server.stdout.take());
    // A child process of the server may keep the output open forever, so the group is ended together with the
    // server.
    let (ended, status) = mpsc::channel();
    thread::spawn(move || {
        let status = server.wait().ok();
        thread::sleep(OUTPUT_DRAIN_TIMEOUT);
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
        thread::spawn(move || forward_client_messages(input, &shared, &settings, &limits, &warn));
    }
    let mut keeper = settings.keeper();
    let passed = output.map_or(Ok(()), |output| {
        let mut passing =
            ServerForwarder { shared: &shared, request: &cap_request, keeper: &mut keeper, warn };
        passing.forward_messages(BufReader::new(output))
    });
    keeper.close();
    passed?;
    if *shared.client_gone() {
        return Ok(());
    }
    // If the server closed its output but still runs, it is ended with the group when this process ends.
    let status = status.recv_timeout(SERVER_END_TIMEOUT).ok().flatten();
    let how = status.map_or_else(|| "closed its output".to_owned(), |status| format!("ended ({status})"));
    let message = format!("the MCP server `{}` {how}", server_name(command));
    for id in shared.session().take_open() {
        shared.send(error_response(&id, SERVER_ERROR, &message).as_bytes()).map_err(CommandError::Write)?;
    }
    Err(CommandError::Upstream { message, hint: None })
}

/// Returns an error response to the request with this id.
fn error_response(id: &str, code: i32, message: &str) -> String {
    let error = json!({"code": code, "message": message});
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n")
}

fn server_name(command: &[OsString]) -> String {
    command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
}

fn start_server(command: &[OsString], group: &Group) -> io::Result<Child> {
    let (program, rest) = command.split_first().ok_or_else(|| io::Error::other("no command is named"))?;
    Command::new(program)
        .args(rest)
        .process_group(group.group_id())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

/// Forwards messages of the client until its input ends.
fn forward_client_messages(
    mut server: ChildStdin,
    shared: &WrapState,
    settings: &Settings,
    limits: &Limits,
    warn: &WarningHandler,
) {
    let mut client = BufReader::new(io::stdin());
    let mut line = Vec::new();
    while let Ok(incoming @ (ReadMessage::Message | ReadMessage::TooLong(_))) =
        messages::read_message(&mut client, &mut line, MESSAGE_LIMIT_BYTES)
    {
        let sent = match incoming {
            ReadMessage::TooLong(MessageOutline { id, has_method }) => {
                let message = format!("a message of the client has more than {MESSAGE_LIMIT_BYTES} bytes");
                warn(&format!("{message}, so it was omitted"));
                let id = id.filter(|_| has_method);
                id.map_or(Ok(()), |id| shared.send(error_response(&id, INVALID_REQUEST, &message).as_bytes()))
            }
            _ => match shared.session().handle_client_message(&line) {
                MessageDestination::Pass => server.write_all(&line).and_then(|()| server.flush()),
                MessageDestination::Read { id, arguments } => {
                    let answer = read_tool::answer_call(&id, arguments.as_deref(), settings, limits);
                    shared.send(format!("{answer}\n").as_bytes())
                }
            },
        };
        if sent.is_err() {
            // The server has ended. The thread that reads its output reports that.
            return;
        }
    }
    *shared.client_gone() = true;
    drop(server);
    thread::sleep(SERVER_END_TIMEOUT);
    // If the server is still running, the process group ends it.
    std::process::exit(i32::from(ExitStatus::Success.code()));
}

/// Forwards messages of the server to the client.
struct ServerForwarder<'a> {
    shared: &'a WrapState,
    request: &'a CapRequest,
    keeper: &'a mut OutputKeeper,
    warn: &'a WarningHandler,
}

impl ServerForwarder<'_> {
    fn forward_messages(&mut self, mut server: impl BufRead) -> Result<(), CommandError> {
        let mut line = Vec::new();
        let failed = |error: io::Error| CommandError::Upstream {
            message: format!("cannot read the output of the MCP server: {error}"),
            hint: None,
        };
        loop {
            match messages::read_message(&mut server, &mut line, MESSAGE_LIMIT_BYTES).map_err(failed)? {
                ReadMessage::End => return Ok(()),
                ReadMessage::TooLong(outline) => {
                    let why = format!("has more than {MESSAGE_LIMIT_BYTES} bytes");
                    self.reject(&outline, &why).map_err(CommandError::Write)?;
                }
                ReadMessage::Message => self.deliver_message(&line).map_err(CommandError::Write)?,
            }
        }
    }

    /// Sends a message of the server, or its replacement, to the client.
    fn deliver_message(&mut self, line: &[u8]) -> io::Result<()> {
        // Messages must be UTF-8. Clients replace invalid bytes in the same way.
        let text = String::from_utf8_lossy(without_byte_order_mark(line));
        let Ok(message) = Value::parse_str(&text) else {
            // A client that accepts more than strict JSON may still be able to read the message.
            if size(&text, self.request.limits.unit) > self.request.limits.most {
                return self.reject(&messages::outline_of(line), "is too long, and is not JSON");
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
    fn reject(&self, outline: &MessageOutline, why: &str) -> io::Result<()> {
        let message = format!("a response of the MCP server was omitted because it {why}");
        (self.warn)(&message);
        if outline.has_method {
            return Ok(());
        }
        let lost = self.shared.session().take_unanswerable(outline.id.as_deref());
        lost.iter().try_for_each(|id| self.shared.send(error_response(id, SERVER_ERROR, &message).as_bytes()))
    }

    /// Returns the replacement of a message. Returns `None` if the message is forwarded unchanged.
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
        // Responses to unknown ids are also capped, because a client may compare ids in another way.
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
                Some(error_response(&id, SERVER_ERROR, &message).trim_end().to_owned())
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
                self.shared.session().note_read_tool_offered();
                Some(line)
            }
            Ok(None) => unchanged(format!("the server has its own tool `{}`", read_tool::NAME)),
            Err(error) => unchanged(error.to_string()),
        }
    }
}
