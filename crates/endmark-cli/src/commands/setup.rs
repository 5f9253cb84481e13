//! `endmark setup`: the settings that route a client through Endmark: shown, written into its configuration, or
//! undone.

use std::fmt::Write;
use std::path::PathBuf;

use endmark_agents::clients::{
    self, Address, Change, Client, ClientChoice, ConfigurationFile, Document, KeptKey, Keys, Record,
    Reversion, Revision, Setting, Syntax, UnfitFile, address, without_password,
};
use endmark_config::Settings;
use endmark_envelope::Warning;
use endmark_failure::{CommandError, in_one_line};
use endmark_gateway::Mode;
use endmark_wire::format::WireFormat;
use serde::Serialize;

use crate::arguments::setup::Setup;
use crate::context::{Context, configuration_warnings};
use crate::view::answer::{Answer, to_data};
use crate::view::paint::{Paint, Painter};

/// What was done for a client, or is to be done.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Report {
    client: &'static str,
    /// `shown`, `written`, `undone`, or `unchanged`.
    action: &'static str,
    /// Where the client finds the gateway.
    url: String,
    /// The client's configuration file.
    file: Option<String>,
    /// The lines for the file, in its own language; only where they are shown.
    snippet: Option<String>,
    changes: Vec<ChangeReport>,
    /// A copy of the file as it was found.
    backup: Option<String>,
    notes: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ChangeReport {
    key: String,
    before: Option<String>,
    after: Option<String>,
}

/// The inputs, known before any file is read or written.
struct Task<'a> {
    arguments: &'a Setup,
    client: Client,
    address: Address,
    settings: Vec<Setting>,
    path: Option<PathBuf>,
    painter: Painter,
    /// Whether every cut reply is already resumed, as far as the local configuration shows.
    resumes_all: bool,
}

/// The note for agents if not every cut reply is resumed.
const RESUME_ALL: &str = "Where it sends a limit with a request, plain texts end there: to have these whole, too, start Endmark with \
      `endmark serve --set resume.mode=on`.";

/// Shows, writes or undoes the settings of a client.
pub(crate) fn run(context: &Context, arguments: &Setup) -> Result<Answer, CommandError> {
    if arguments.undo {
        // Undo must work whatever has happened to Endmark's own configuration since.
        let settings = context.configuration(Vec::new()).map(|effective| effective.settings);
        let address =
            address(arguments.url.as_deref(), arguments.upstream.as_deref(), &settings.unwrap_or_default())
                .unwrap_or_else(|_| Address {
                    root: format!("http://{}", Settings::default().gateway.listener.listen),
                });
        return Task::new(context, arguments, address, true).undo();
    }
    let effective = context.configuration(Vec::new())?;
    let address = address(arguments.url.as_deref(), arguments.upstream.as_deref(), &effective.settings)?;
    let resumes_all = effective.settings.gateway.resume.mode == Mode::On;
    let task = Task::new(context, arguments, address, resumes_all);
    let answer = if arguments.write { task.write() } else { task.show() }?;
    // The local configuration says nothing about a gateway elsewhere.
    let is_here = arguments.url.is_none() && arguments.upstream.is_none();
    let unserved = is_here.then(|| unserved(&task, &effective.settings)).flatten();
    Ok(answer.with_warnings(unserved).with_warnings(configuration_warnings(&effective)))
}

/// Warns if the client needs a wire format that no configured upstream speaks.
fn unserved(task: &Task<'_>, settings: &Settings) -> Option<Warning> {
    let is_served = |format: &dyn WireFormat| {
        settings.upstreams.iter().any(|upstream| upstream.format == format.provider())
    };
    let needed = clients::needed(task.arguments.client, task.arguments.model.as_deref());
    let missing = needed.iter().find(|format| !is_served(**format))?;
    let message = format!(
        "no upstream is configured for {}, so its requests are refused, or go to the first one: add `[upstreams.NAME]` with `format = \"{}\"` \
         and its `base_url`, as {}",
        missing.title(),
        missing.provider().name,
        missing.provider().base_url()
    );
    Some(Warning::notice("SETUP", message))
}

impl<'a> Task<'a> {
    fn new(context: &Context, arguments: &'a Setup, address: Address, resumes_all: bool) -> Self {
        let choice = arguments.client;
        let settings = clients::settings(choice, &address, arguments.model.as_deref());
        let path = arguments.file.clone().or_else(|| clients::file(choice, &context.environment));
        let painter = context.terminal.output;
        Self { arguments, client: Client::of(choice), address, settings, path, painter, resumes_all }
    }

    /// Further notes for the user, one sentence each.
    fn notes(&self) -> impl Iterator<Item = &'static str> {
        let is_agent = !matches!(self.arguments.client, ClientChoice::Openai | ClientChoice::Anthropic);
        let resume_all = (is_agent && !self.resumes_all).then_some(RESUME_ALL);
        self.client.notes.iter().copied().chain(resume_all)
    }

    fn keys<'k>(&self, others: &'k [&'static [&'static str]]) -> Keys<'k> {
        Keys { own: clients::owned(self.arguments.client), others }
    }

    fn syntax(&self) -> Syntax {
        self.client.syntax
    }

    fn show(&self) -> Result<Answer, CommandError> {
        let mut document = Document::parse(self.syntax(), "").map_err(|error| self.bug(&error))?;
        for setting in &self.settings {
            document.set(&setting.path(), &setting.value).map_err(|error| self.bug(&error))?;
        }
        let snippet = document.text();
        let mut text = String::new();
        if let Some(path) = &self.path {
            let heading = format!("# For {}, in {}", self.client.title, path.display());
            // Everything that is not configuration is a comment, so that the output can be copied as a whole.
            let _ = writeln!(text, "{}", self.painter.paint(Paint::Faint, &heading));
        }
        text.push_str(&snippet);
        let hint = match self.arguments.client {
            ClientChoice::Openai | ClientChoice::Anthropic => {
                "# in a shell: export it; in a project: `--write` puts it into .env".to_owned()
            }
            _ => format!("# `endmark setup {} --write` puts it there, `--undo` takes it back", self.name()),
        };
        for line in self.notes().map(|note| format!("# {note}")).chain([hint]) {
            let _ = writeln!(text, "{}", self.painter.paint(Paint::Faint, &line));
        }
        let report = Report { snippet: Some(snippet), ..self.report("shown", Vec::new()) };
        Ok(Answer::yes(to_data(&report)?, text))
    }

    fn write(&self) -> Result<Answer, CommandError> {
        let file = self.open()?;
        let others = clients::owned_by_others(self.arguments.client);
        let record = self.record(&file, &others)?;
        let revision = clients::revise(
            self.syntax(),
            file.text.as_deref(),
            record.as_ref(),
            &self.settings,
            self.keys(&others),
        );
        match revision.map_err(|error| self.unfit(&file, &error))? {
            Revision::Same => {
                let text = format!("{} says it already; nothing was written.\n", file.path.display());
                let answer = Answer::yes(to_data(&self.report("unchanged", Vec::new()))?, text);
                Ok(answer.with_warnings(self.overridden(file.text.as_deref().unwrap_or_default())))
            }
            Revision::New { record, changes } => {
                file.write(&record)?;
                let mut text = format!("Written to {}:\n", file.path.display());
                text.push_str(&self.lines(&changes));
                let backup = record.original.is_some().then(|| file.backup().display().to_string());
                if let Some(backup) = &backup {
                    let _ = writeln!(text, "The file as it was is in {backup}.");
                }
                let _ = writeln!(text, "`endmark setup {} --undo` takes it back.", self.name());
                for note in self.notes() {
                    let _ = writeln!(text, "{note}");
                }
                let mut warnings = self.was_elsewhere(&record);
                warnings.extend(self.overridden(&record.written));
                let report = Report { backup, ..self.report("written", changes) };
                Ok(Answer::yes(to_data(&report)?, text).with_warnings(warnings))
            }
        }
    }

    /// Warns if another setting in the client's file overrides what was written.
    fn overridden(&self, text: &str) -> Option<Warning> {
        let document = Document::parse(self.syntax(), text).ok()?;
        let (key, value) = clients::overridden(self.arguments.client, &document)?;
        let (key, value) = (in_one_line(&key), in_one_line(&value));
        let message = format!(
            "`{key}` is `{value}`, and {} takes that: its requests do not come through Endmark until it is `endmark`, \
             or gone",
            self.client.title
        );
        Some(Warning::notice("SETUP", message))
    }

    /// Warns if the client used another address before: Endmark's upstream should now be that address.
    fn was_elsewhere(&self, record: &Record) -> Vec<Warning> {
        let parsed = |text: &str| Document::parse(self.syntax(), text).ok();
        let original = record.original.as_deref().and_then(parsed);
        let Some((original, written)) = original.zip(parsed(&record.written)) else { return Vec::new() };
        let went_to = |setting: &Setting| {
            let before = original.value(&setting.path()).filter(|before| before.starts_with("http"))?;
            (written.value(&setting.path()).as_ref() != Some(&before)).then_some(before)
        };
        let warning = |before: String| {
            let message = format!(
                "it went to {} before: if replies are still to come from there, make that the `base_url` of an upstream of Endmark's",
                in_one_line(&without_password(&before))
            );
            Warning::notice("SETUP", message)
        };
        self.settings.iter().filter_map(went_to).map(warning).collect()
    }

    fn undo(&self) -> Result<Answer, CommandError> {
        let file = self.open()?;
        let others = clients::owned_by_others(self.arguments.client);
        let record = self.record(&file, &others)?;
        let reversion = file.text.as_deref().map(|text| {
            clients::revert(self.syntax(), text, record.as_ref(), &self.settings, self.keys(&others))
                .map_err(|error| self.unfit(&file, &error))
        });
        match reversion.transpose()?.unwrap_or(Reversion::Nothing) {
            Reversion::Nothing => {
                file.forget()?;
                let text = format!("{} has nothing of Endmark's; it stays as it is.\n", file.path.display());
                Ok(Answer::yes(to_data(&self.report("unchanged", Vec::new()))?, text))
            }
            Reversion::Shared { changes, left, .. } if changes.is_empty() && left.is_empty() => {
                let path = file.path.display();
                let text = format!(
                    "{path} has nothing of Endmark's for {}; it stays as it is.\n",
                    self.client.title
                );
                Ok(Answer::yes(to_data(&self.report("unchanged", Vec::new()))?, text))
            }
            Reversion::Shared { record, changes, left } => {
                file.write(&record)?;
                let mut text = format!(
                    "{} is written for other clients, too. Only what is there for {} was taken back:\n",
                    file.path.display(),
                    self.client.title
                );
                text.push_str(&self.lines(&changes));
                let answer = Answer::yes(to_data(&self.report("undone", changes))?, text);
                Ok(answer.with_warnings(left_alone(&left)))
            }
            Reversion::Exactly { original, changes } => {
                file.restore(original.as_deref())?;
                let text = match original {
                    Some(_) => format!("{} is again what it was, byte for byte:\n", file.path.display()),
                    None => format!("{} is removed; it was not there before:\n", file.path.display()),
                };
                let text = text + &self.lines(&changes);
                Ok(Answer::yes(to_data(&self.report("undone", changes))?, text))
            }
            Reversion::OwnKeys { changes, left, .. } if changes.is_empty() => {
                file.forget()?;
                let path = file.path.display();
                let text = format!("{path} has nothing that is as Endmark wrote it; it stays as it is.\n");
                let answer = Answer::yes(to_data(&self.report("unchanged", Vec::new()))?, text);
                Ok(answer.with_warnings(left_alone(&left)))
            }
            Reversion::OwnKeys { text: restored, changes, left } => {
                file.restore(Some(&restored))?;
                let why = match record {
                    Some(_) => "was changed since by somebody else",
                    None => "was written without a record of what it was before, or that is gone",
                };
                let path = file.path.display();
                let mut text = format!("{path} {why}. Only Endmark's keys were taken back:\n");
                text.push_str(&self.lines(&changes));
                let answer = Answer::yes(to_data(&self.report("undone", changes))?, text);
                Ok(answer.with_warnings(left_alone(&left)))
            }
        }
    }

    fn open(&self) -> Result<ConfigurationFile, CommandError> {
        let Some(path) = &self.path else {
            return Err(CommandError::input(
                "no_home",
                format!("the configuration of {} cannot be found: HOME is not set", self.client.title),
                "Set HOME, or name the file: `--file FILE`.",
            ));
        };
        ConfigurationFile::open_to_write(path)
    }

    /// Returns the record kept beside the file, or an error if it should hold the original file and does not.
    fn record(
        &self,
        file: &ConfigurationFile,
        others: &[&'static [&'static str]],
    ) -> Result<Option<Record>, CommandError> {
        let Some(record) = file.record()? else { return Ok(None) };
        match record.has_lost_its_original(self.syntax(), self.keys(others)) {
            Ok(true) => Err(clients::lost(file)),
            Ok(false) => Ok(Some(record)),
            Err(error) => Err(self.unfit(file, &error)),
        }
    }

    fn name(&self) -> &'static str {
        self.arguments.client.name()
    }

    fn report(&self, action: &'static str, changes: Vec<Change>) -> Report {
        let changes = changes.into_iter().map(|change| ChangeReport {
            key: change.key,
            before: change.before.map(|value| without_password(&value)),
            after: change.after.map(|value| without_password(&value)),
        });
        Report {
            client: self.name(),
            action,
            url: self.address.root.clone(),
            file: self.path.as_ref().map(|path| path.display().to_string()),
            snippet: None,
            changes: changes.collect(),
            backup: None,
            notes: self.notes().map(str::to_owned).collect(),
        }
    }

    fn lines(&self, changes: &[Change]) -> String {
        let shown = |value: &Option<String>| match value {
            Some(value) => in_one_line(&without_password(value)),
            None => "not set".to_owned(),
        };
        let mut text = String::new();
        for change in changes {
            let key = self.painter.paint(Paint::Strong, &change.key);
            let _ = writeln!(text, "  {key}: {} → {}", shown(&change.before), shown(&change.after));
        }
        text
    }

    fn unfit(&self, file: &ConfigurationFile, error: &UnfitFile) -> CommandError {
        let path = file.path.display();
        let name = self.name();
        let (message, hint) = match error {
            UnfitFile::Unreadable(reason) => (
                format!("`{path}` is no {} that can be read: {reason}", self.syntax().name()),
                format!(
                    "Repair it, or add the lines that `endmark setup {name}` shows. Nothing was written."
                ),
            ),
            UnfitFile::NoTable(key) => (
                format!("`{path}`: `{key}` is no table, and there is no place for what has to be in it"),
                format!(
                    "Look what it is for; `endmark setup {name}` shows what has to be there. Nothing was written."
                ),
            ),
            UnfitFile::IsTable(key) => (
                format!("`{path}`: `{key}` is a table, and would be lost"),
                format!(
                    "Look what it is for; `endmark setup {name}` shows what has to be there. Nothing was written."
                ),
            ),
            UnfitFile::NoList(key) => (
                format!("`{path}`: `{key}` is no list, and there is no place for what has to be in it"),
                format!(
                    "Look what it is for; `endmark setup {name}` shows what has to be there. Nothing was written."
                ),
            ),
            UnfitFile::Unfaithful => (
                format!("`{path}` cannot be changed without changing more of it than that"),
                format!("Add the lines that `endmark setup {name}` shows. Nothing was written."),
            ),
        };
        CommandError::input("unfit_file", message, hint)
    }

    fn bug(&self, error: &UnfitFile) -> CommandError {
        CommandError::Bug(format!("what {} needs cannot be written: {error}", self.client.title))
    }
}

/// Warns about settings that were changed by someone else since, and were therefore not undone.
fn left_alone(left: &[KeptKey]) -> Vec<Warning> {
    let message = |KeptKey { key, changed }: &KeptKey| {
        let changed = changed.iter().map(|name| format!("`{}`", in_one_line(name)));
        match changed.collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => format!("`{key}` was set to something else since, and stays so"),
            names => format!("`{key}` stays whole: in it {names} is not as Endmark wrote it"),
        }
    };
    left.iter().map(|left| Warning::notice("SETUP", message(left))).collect()
}
