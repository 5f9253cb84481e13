//! What a configuration file becomes, and how it comes back: decided on texts alone.

use super::clients::Setting;
use super::document::{Document, Syntax, Unfit};

/// What is kept beside a file that was written, so that it can come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// The file as it was found; none if there was none.
    pub(super) original: Option<String>,
    /// The file as it was left.
    pub(super) written: String,
}

/// One key, before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) key: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// What writing comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Revision {
    /// The file says it all already.
    Same,
    New {
        record: Record,
        changes: Vec<Change>,
    },
}

/// What taking back comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reversion {
    /// There is nothing of Endmark's in the file.
    Nothing,
    /// The file was not touched since: it becomes what it was, or goes.
    Exactly { original: Option<String>, changes: Vec<Change> },
    /// It was touched since: only Endmark's keys go back.
    OwnKeys {
        text: String,
        changes: Vec<Change>,
        /// Keys of Endmark's that somebody has set to something else since; they stay.
        left: Vec<String>,
    },
}

/// What a file becomes that has to say this. A file that was written before is revised from what it was before that, so
/// that taking back once is enough.
pub(super) fn revise(
    syntax: Syntax,
    current: Option<&str>,
    record: Option<&Record>,
    settings: &[Setting],
    owned: &[&[&str]],
) -> Result<Revision, Unfit> {
    let found = Document::parse(syntax, current.unwrap_or_default())?;
    let original = match (current, record) {
        (Some(current), Some(record)) if current == record.written => record.original.clone(),
        (Some(current), Some(record)) => {
            Some(given_back(syntax, current, Some(record), settings, owned)?.0.text())
        }
        (current, _) => current.map(str::to_owned),
    };
    let mut document = Document::parse(syntax, original.as_deref().unwrap_or_default())?;
    for setting in settings {
        document.set(&setting.path(), &setting.value)?;
    }
    let changes: Vec<Change> = settings
        .iter()
        .map(|setting| Change {
            key: setting.path.join("."),
            before: found.value(&setting.path()),
            after: document.value(&setting.path()),
        })
        .filter(|change| change.before != change.after)
        .collect();
    if changes.is_empty() {
        return Ok(Revision::Same);
    }
    Ok(Revision::New { record: Record { original, written: document.text() }, changes })
}

/// What a file becomes that is to have nothing of Endmark's any more. `settings` is what would be written now: where no
/// record says what was written, a key counts as Endmark's that has just that value.
pub(super) fn revert(
    syntax: Syntax,
    current: &str,
    record: Option<&Record>,
    settings: &[Setting],
    owned: &[&[&str]],
) -> Result<Reversion, Unfit> {
    if let Some(record) = record.filter(|record| record.written == current) {
        let before = Document::parse(syntax, record.original.as_deref().unwrap_or_default())?;
        let now = Document::parse(syntax, current)?;
        return Ok(Reversion::Exactly {
            original: record.original.clone(),
            changes: changes(&now, &before, owned),
        });
    }
    let (document, left) = given_back(syntax, current, record, settings, owned)?;
    let changes = changes(&Document::parse(syntax, current)?, &document, owned);
    Ok(if changes.is_empty() && left.is_empty() {
        Reversion::Nothing
    } else {
        Reversion::OwnKeys { text: document.text(), changes, left }
    })
}

/// The file with Endmark's keys as they were before, and those that are Endmark's no more.
fn given_back(
    syntax: Syntax,
    current: &str,
    record: Option<&Record>,
    settings: &[Setting],
    owned: &[&[&str]],
) -> Result<(Document, Vec<String>), Unfit> {
    let original = record.and_then(|record| record.original.as_deref()).unwrap_or_default();
    let original = Document::parse(syntax, original)?;
    let written = record.map(|record| Document::parse(syntax, &record.written)).transpose()?;
    let mut document = Document::parse(syntax, current)?;
    let mut left = Vec::new();
    for path in owned {
        let Some(value) = document.value(path) else { continue };
        let expected = if let Some(written) = &written {
            written.value(path)
        } else {
            let setting = settings.iter().find(|setting| setting.path() == *path);
            setting.and_then(|setting| setting.text_value().map(str::to_owned))
        };
        // What carries Endmark's name is Endmark's, whatever was changed in it.
        if expected.as_ref() == Some(&value) || path.contains(&super::NAME) {
            document.take_from(&original, path)?;
        } else if written.is_some() && expected.is_some() && original.value(path).as_ref() != Some(&value) {
            left.push(path.join("."));
        }
    }
    Ok((document, left))
}

fn changes(before: &Document, after: &Document, owned: &[&[&str]]) -> Vec<Change> {
    let change =
        |path: &&[&str]| Change { key: path.join("."), before: before.value(path), after: after.value(path) };
    owned.iter().map(change).filter(|change| change.before != change.after).collect()
}
