//! `endmark setup`: shows or writes the settings that route a client through Endmark, or removes them.

use std::fmt::Write;
use std::path::PathBuf;

use endmark_agents::clients::{
    self, ClientChoice, ClientProperties, ConfigDocument, ConfigKeys, ConfigurationFile, GatewayAddress,
    KeptKey, KeyChange, RequiredSetting, ReversionResult, RevisionResult, Syntax, UneditableFile,
    WriteRecord, find_address, without_password,
};
use endmark_config::Settings;
use endmark_envelope::Warning;
use endmark_failure::{CommandError, to_single_line};
use endmark_gateway::ResumeMode;
use endmark_wire::format::WireFormat;
use serde::Serialize;

use crate::arguments::setup::Setup;
use crate::context::{Context, configuration_warnings};
use crate::view::answer::{Answer, to_data};
use crate::view::paint::{Paint, Painter};

/// Answer data: what was done for a client.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SetupReport {
    client: &'static str,
    /// `shown`, `written`, `undone`, or `unchanged`.
    action: &'static str,
    /// The gateway's address for the client.
    url: String,
    /// The client's configuration file.
    file: Option<String>,
    /// The lines for the file, in its own syntax; only if they are shown.
    snippet: Option<String>,
    changes: Vec<ChangeReport>,
    /// A copy of the original file.
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
struct SetupTask<'a> {
    arguments: &'a Setup,
    client: ClientProperties,
    address: GatewayAddress,
    settings: Vec<RequiredSetting>,
    path: Option<PathBuf>,
    painter: Painter,
    /// Whether every cut reply is already resumed, as far as the local configuration shows.
    resumes_all: bool,
}

/// The note for agents if not every cut reply is resumed.
const RESUME_ALL_NOTE: &str = "If the client sends an output limit, plain texts end at that limit. To continue them, too, start Endmark with \
      `endmark serve --set resume.mode=on`.";

/// Shows, writes or undoes the settings of a client.
pub(crate) fn run(context: &Context, arguments: &Setup) -> Result<Answer, CommandError> {
    if arguments.undo {
        // Undo must work even if Endmark's own configuration has become invalid.
        let settings = context.load_configuration(Vec::new()).map(|effective| effective.settings);
        let address = find_address(
            arguments.url.as_deref(),
            arguments.upstream.as_deref(),
            &settings.unwrap_or_default(),
        )
        .unwrap_or_else(|_| GatewayAddress {
            root: format!("http://{}", Settings::default().gateway.listener.listen),
        });
        return SetupTask::new(context, arguments, address, true).undo();
    }
    let effective = context.load_configuration(Vec::new())?;
    let address = find_address(arguments.url.as_deref(), arguments.upstream.as_deref(), &effective.settings)?;
    let resumes_all = effective.settings.gateway.resume.mode == ResumeMode::On;
    let task = SetupTask::new(context, arguments, address, resumes_all);
    let answer = if arguments.write { task.write() } else { task.show() }?;
    // The local configuration does not apply to a gateway on another machine.
    let is_here = arguments.url.is_none() && arguments.upstream.is_none();
    let unserved = is_here.then(|| unserved_warning(&task, &effective.settings)).flatten();
    Ok(answer.with_warnings(unserved).with_warnings(configuration_warnings(&effective)))
}

/// Warns if the client needs a wire format for which no upstream is configured.
fn unserved_warning(task: &SetupTask<'_>, settings: &Settings) -> Option<Warning> {
    let is_served = |format: &dyn WireFormat| {
        settings.upstreams.iter().any(|upstream| upstream.format == format.provider())
    };
    let needed = clients::required_formats(task.arguments.client, task.arguments.model.as_deref());
    let missing = needed.iter().find(|format| !is_served(**format))?;
    let message = format!(
        "no upstream is configured for {}, so its requests are refused, or go to the first upstream: add `[upstreams.NAME]` with `format = \"{}\"` \
         and its `base_url`, for example {}",
        missing.title(),
        missing.provider().name,
        missing.provider().base_url()
    );
    Some(Warning::notice("SETUP", message))
}

impl<'a> SetupTask<'a> {
    fn new(context: &Context, arguments: &'a Setup, address: GatewayAddress, resumes_all: bool) -> Self {
        let choice = arguments.client;
        let settings = clients::required_settings(choice, &address, arguments.model.as_deref());
        let path =
            arguments.file.clone().or_else(|| clients::configuration_path(choice, &context.environment));
        let painter = context.terminal.output;
        Self {
            arguments,
            client: ClientProperties::new(choice),
            address,
            settings,
            path,
            painter,
            resumes_all,
        }
    }

    /// Further notes for the user, one sentence each.
    fn notes(&self) -> impl Iterator<Item = &'static str> {
        let is_agent = !matches!(self.arguments.client, ClientChoice::Openai | ClientChoice::Anthropic);
        let resume_all = (is_agent && !self.resumes_all).then_some(RESUME_ALL_NOTE);
        self.client.notes.iter().copied().chain(resume_all)
    }

    fn keys<'k>(&self, others: &'k [&'static [&'static str]]) -> ConfigKeys<'k> {
        ConfigKeys { endmark_keys: clients::undo_keys(self.arguments.client), other_client_keys: others }
    }

    fn syntax(&self) -> Syntax {
        self.client.syntax
    }

    fn show(&self) -> Result<Answer, CommandError> {
        let mut document =
            ConfigDocument::parse(self.syntax(), "").map_err(|error| self.internal_error(&error))?;
        for setting in &self.settings {
            document.set(&setting.path(), &setting.value).map_err(|error| self.internal_error(&error))?;
        }
        let snippet = document.text();
        let mut text = String::new();
        if let Some(path) = &self.path {
            let heading = format!("# For {}, in {}", self.client.title, path.display());
            // Everything except the configuration is a comment, so that users can copy the whole output.
            let _ = writeln!(text, "{}", self.painter.paint(Paint::Dim, &heading));
        }
        text.push_str(&snippet);
        let hint = match self.arguments.client {
            ClientChoice::Openai | ClientChoice::Anthropic => {
                "# In a shell: export it. In a project: `--write` writes it to .env".to_owned()
            }
            _ => format!("# `endmark setup {} --write` writes this, `--undo` removes it", self.name()),
        };
        for line in self.notes().map(|note| format!("# {note}")).chain([hint]) {
            let _ = writeln!(text, "{}", self.painter.paint(Paint::Dim, &line));
        }
        let report = SetupReport { snippet: Some(snippet), ..self.report("shown", Vec::new()) };
        Ok(Answer::yes(to_data(&report)?, text))
    }

    fn write(&self) -> Result<Answer, CommandError> {
        let file = self.open()?;
        let others = clients::other_client_keys(self.arguments.client);
        let record = self.record(&file, &others)?;
        let revision = clients::revise(
            self.syntax(),
            file.text.as_deref(),
            record.as_ref(),
            &self.settings,
            self.keys(&others),
        );
        match revision.map_err(|error| self.unfit_error(&file, &error))? {
            RevisionResult::Unchanged => {
                let text = format!("{} is already up to date; nothing was written.\n", file.path.display());
                let answer = Answer::yes(to_data(&self.report("unchanged", Vec::new()))?, text);
                Ok(answer.with_warnings(self.overridden_warning(file.text.as_deref().unwrap_or_default())))
            }
            RevisionResult::New { record, changes } => {
                file.write(&record)?;
                let mut text = format!("Written to {}:\n", file.path.display());
                text.push_str(&self.describe_changes(&changes));
                let backup = record.original.is_some().then(|| file.backup_path().display().to_string());
                if let Some(backup) = &backup {
                    let _ = writeln!(text, "The original file is saved as {backup}.");
                }
                let _ = writeln!(text, "`endmark setup {} --undo` restores it.", self.name());
                for note in self.notes() {
                    let _ = writeln!(text, "{note}");
                }
                let mut warnings = self.previous_location_warnings(&record);
                warnings.extend(self.overridden_warning(&record.written));
                let report = SetupReport { backup, ..self.report("written", changes) };
                Ok(Answer::yes(to_data(&report)?, text).with_warnings(warnings))
            }
        }
    }

    /// Warns if another setting in the client's file overrides the written one.
    fn overridden_warning(&self, text: &str) -> Option<Warning> {
        let document = ConfigDocument::parse(self.syntax(), text).ok()?;
        let (key, value) = clients::overriding_setting(self.arguments.client, &document)?;
        let (key, value) = (to_single_line(&key), to_single_line(&value));
        let message = format!(
            "`{key}` is `{value}`, which {} uses: its requests bypass Endmark until you set the key to `endmark` \
             or remove it",
            self.client.title
        );
        Some(Warning::notice("SETUP", message))
    }

    /// Warns if the client used another address before, which Endmark should now use as an upstream.
    fn previous_location_warnings(&self, record: &WriteRecord) -> Vec<Warning> {
        let parsed = |text: &str| ConfigDocument::parse(self.syntax(), text).ok();
        let original = record.original.as_deref().and_then(parsed);
        let Some((original, written)) = original.zip(parsed(&record.written)) else { return Vec::new() };
        let went_to = |setting: &RequiredSetting| {
            let before = original.value(&setting.path()).filter(|before| before.starts_with("http"))?;
            (written.value(&setting.path()).as_ref() != Some(&before)).then_some(before)
        };
        let warning = |before: String| {
            let message = format!(
                "the client used {} before: to keep using that server, set it as the `base_url` of an upstream in Endmark",
                to_single_line(&without_password(&before))
            );
            Warning::notice("SETUP", message)
        };
        self.settings.iter().filter_map(went_to).map(warning).collect()
    }

    fn undo(&self) -> Result<Answer, CommandError> {
        let file = self.open()?;
        let others = clients::other_client_keys(self.arguments.client);
        let record = self.record(&file, &others)?;
        let reversion = file.text.as_deref().map(|text| {
            clients::revert(self.syntax(), text, record.as_ref(), &self.settings, self.keys(&others))
                .map_err(|error| self.unfit_error(&file, &error))
        });
        match reversion.transpose()?.unwrap_or(ReversionResult::Unchanged) {
            ReversionResult::Unchanged => {
                file.delete_record()?;
                let text =
                    format!("{} has no settings of Endmark; it was not changed.\n", file.path.display());
                Ok(Answer::yes(to_data(&self.report("unchanged", Vec::new()))?, text))
            }
            ReversionResult::Shared { changes, left, .. } if changes.is_empty() && left.is_empty() => {
                let path = file.path.display();
                let text = format!(
                    "{path} has no settings of Endmark for {}; it was not changed.\n",
                    self.client.title
                );
                Ok(Answer::yes(to_data(&self.report("unchanged", Vec::new()))?, text))
            }
            ReversionResult::Shared { record, changes, left } => {
                file.write(&record)?;
                let mut text = format!(
                    "{} has settings for other clients, too. Only those for {} were restored:\n",
                    file.path.display(),
                    self.client.title
                );
                text.push_str(&self.describe_changes(&changes));
                let answer = Answer::yes(to_data(&self.report("undone", changes))?, text);
                Ok(answer.with_warnings(kept_key_warnings(&left)))
            }
            ReversionResult::Original { original, changes } => {
                file.restore(original.as_deref())?;
                let text = match original {
                    Some(_) => format!("{} is restored, byte for byte:\n", file.path.display()),
                    None => format!("{} is removed; it did not exist before:\n", file.path.display()),
                };
                let text = text + &self.describe_changes(&changes);
                Ok(Answer::yes(to_data(&self.report("undone", changes))?, text))
            }
            ReversionResult::OwnKeys { changes, left, .. } if changes.is_empty() => {
                file.delete_record()?;
                let path = file.path.display();
                let text = format!("{path} has no unchanged settings of Endmark; it was not changed.\n");
                let answer = Answer::yes(to_data(&self.report("unchanged", Vec::new()))?, text);
                Ok(answer.with_warnings(kept_key_warnings(&left)))
            }
            ReversionResult::OwnKeys { text: restored, changes, left } => {
                file.restore(Some(&restored))?;
                let why = match record {
                    Some(_) => "was changed since then by another program or user",
                    None => "has no record of its original content",
                };
                let path = file.path.display();
                let mut text = format!("{path} {why}. Only Endmark's keys were restored:\n");
                text.push_str(&self.describe_changes(&changes));
                let answer = Answer::yes(to_data(&self.report("undone", changes))?, text);
                Ok(answer.with_warnings(kept_key_warnings(&left)))
            }
        }
    }

    fn open(&self) -> Result<ConfigurationFile, CommandError> {
        let Some(path) = &self.path else {
            return Err(CommandError::input(
                "no_home",
                format!("the configuration of {} cannot be found: HOME is not set", self.client.title),
                "Set HOME, or name the file with `--file FILE`.",
            ));
        };
        ConfigurationFile::open_to_write(path)
    }

    /// Returns the record of earlier changes, which is stored next to the file. Fails if the record should
    /// contain the original file but does not.
    fn record(
        &self,
        file: &ConfigurationFile,
        others: &[&'static [&'static str]],
    ) -> Result<Option<WriteRecord>, CommandError> {
        let Some(record) = file.record()? else { return Ok(None) };
        match record.has_lost_its_original(self.syntax(), self.keys(others)) {
            Ok(true) => Err(clients::missing_original(file)),
            Ok(false) => Ok(Some(record)),
            Err(error) => Err(self.unfit_error(file, &error)),
        }
    }

    fn name(&self) -> &'static str {
        self.arguments.client.name()
    }

    fn report(&self, action: &'static str, changes: Vec<KeyChange>) -> SetupReport {
        let changes = changes.into_iter().map(|change| ChangeReport {
            key: change.key,
            before: change.before.map(|value| without_password(&value)),
            after: change.after.map(|value| without_password(&value)),
        });
        SetupReport {
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

    fn describe_changes(&self, changes: &[KeyChange]) -> String {
        let shown = |value: &Option<String>| match value {
            Some(value) => to_single_line(&without_password(value)),
            None => "not set".to_owned(),
        };
        let mut text = String::new();
        for change in changes {
            let key = self.painter.paint(Paint::Strong, &change.key);
            let _ = writeln!(text, "  {key}: {} → {}", shown(&change.before), shown(&change.after));
        }
        text
    }

    fn unfit_error(&self, file: &ConfigurationFile, error: &UneditableFile) -> CommandError {
        let path = file.path.display();
        let name = self.name();
        let (message, hint) = match error {
            UneditableFile::Unreadable(reason) => (
                format!("`{path}` is not valid {}: {reason}", self.syntax().name()),
                format!("Repair it, or add the lines from `endmark setup {name}`. Nothing was written."),
            ),
            UneditableFile::NotATable(key) => (
                format!("`{path}`: `{key}` is not a table, so Endmark's settings cannot be added to it"),
                format!(
                    "Check its purpose; `endmark setup {name}` shows the required lines. Nothing was written."
                ),
            ),
            UneditableFile::IsTable(key) => (
                format!("`{path}`: `{key}` is a table, whose content would be lost"),
                format!(
                    "Check its purpose; `endmark setup {name}` shows the required lines. Nothing was written."
                ),
            ),
            UneditableFile::NotAList(key) => (
                format!("`{path}`: `{key}` is not a list, so Endmark's settings cannot be added to it"),
                format!(
                    "Check its purpose; `endmark setup {name}` shows the required lines. Nothing was written."
                ),
            ),
            UneditableFile::NotPreserved => (
                format!("`{path}` cannot be changed without affecting its other content"),
                format!("Add the lines from `endmark setup {name}`. Nothing was written."),
            ),
        };
        CommandError::input("unfit_file", message, hint)
    }

    fn internal_error(&self, error: &UneditableFile) -> CommandError {
        CommandError::Bug(format!("the settings for {} cannot be written: {error}", self.client.title))
    }
}

/// Warns about settings that were not undone, because they were changed after Endmark wrote them.
fn kept_key_warnings(left: &[KeptKey]) -> Vec<Warning> {
    let message = |KeptKey { key, changed }: &KeptKey| {
        let changed = changed.iter().map(|name| format!("`{}`", to_single_line(name)));
        match changed.collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => format!("`{key}` was changed since then, and keeps its value"),
            names => {
                format!("`{key}` was not changed, because {names} in it was changed since Endmark wrote it")
            }
        }
    };
    left.iter().map(|left| Warning::notice("SETUP", message(left))).collect()
}
