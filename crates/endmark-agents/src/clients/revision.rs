//! Decides how a configuration file is changed and restored. Works on texts only.

use super::client::Setting;
use super::document::{Document, Syntax, UnfitFile};

/// The record of a written file, which allows to restore the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The original file, if it existed.
    pub original: Option<String>,
    /// The written file.
    pub written: String,
}

impl Record {
    /// Whether the original is lost: the written file has more than Endmark's keys, but the record has no original.
    pub fn has_lost_its_original(&self, syntax: Syntax, keys: Keys<'_>) -> Result<bool, UnfitFile> {
        if self.original.is_some() {
            return Ok(false);
        }
        let mut rest = Document::parse(syntax, &self.written)?;
        let nothing = Document::parse(syntax, "")?;
        for path in [keys.endmark_keys, keys.others].concat() {
            rest.copy_from(&nothing, path)?;
        }
        Ok(rest.text().contains(|character: char| !character.is_whitespace() && !"{}".contains(character)))
    }
}

/// A changed key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The dotted path of the key.
    pub key: String,
    /// The previous value, if it was set.
    pub before: Option<String>,
    /// The new value, if it is set.
    pub after: Option<String>,
}

/// A key of Endmark that another program has changed, so it stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptKey {
    /// The dotted path of the key.
    pub key: String,
    /// The changed values of a table. The whole table stays, because half of it could be invalid for its client.
    pub changed: Vec<String>,
}

/// The result of a change.
#[derive(Debug, PartialEq, Eq)]
pub enum Revision {
    /// The file already has all settings.
    Same,
    /// The file must be written.
    New {
        /// The record for the file.
        record: Record,
        /// The changes.
        changes: Vec<Change>,
    },
}

/// The result of an undo.
#[derive(Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields have the same meaning in every variant")]
pub enum Reversion {
    /// The file has no settings of Endmark.
    Unchanged,
    /// The file was not changed since: it is restored or removed.
    Original { original: Option<String>, changes: Vec<Change> },
    /// Other clients share the file: only this client's keys are restored, and the record stays for the others.
    Shared { record: Record, changes: Vec<Change>, left: Vec<KeptKey> },
    /// The file was changed since: only Endmark's keys are restored.
    OwnKeys {
        text: String,
        changes: Vec<Change>,
        /// Keys of Endmark that were changed since, so they stay.
        left: Vec<KeptKey>,
    },
}

/// Endmark's keys in a file.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    /// The keys of this client, each with all keys below it.
    pub endmark_keys: &'a [&'a [&'a str]],
    /// The keys of other clients that can share the file.
    pub others: &'a [&'a [&'a str]],
}

/// Returns the file with these settings. Settings of other clients stay.
///
/// A file that was written before is revised from its original, so that one undo suffices.
pub fn revise(
    syntax: Syntax,
    current: Option<&str>,
    record: Option<&Record>,
    settings: &[Setting],
    keys: Keys<'_>,
) -> Result<Revision, UnfitFile> {
    let found = Document::parse(syntax, current.unwrap_or_default())?;
    let original = match (current, record) {
        (Some(current), Some(record)) if current == record.written => record.original.clone(),
        (Some(current), Some(record)) => Some(remove_own_settings(syntax, current, record, settings, keys)?),
        (current, _) => current.map(str::to_owned),
    };
    let mut document = Document::parse(syntax, original.as_deref().unwrap_or_default())?;
    keep(keys.others, &found, &mut document)?;
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

/// Returns the file without Endmark's settings.
///
/// `settings` are the ones that a write would set now. Without a record, a key with exactly that value counts as
/// Endmark's.
pub fn revert(
    syntax: Syntax,
    current: &str,
    record: Option<&Record>,
    settings: &[Setting],
    keys: Keys<'_>,
) -> Result<Reversion, UnfitFile> {
    let now = Document::parse(syntax, current)?;
    if let Some(record) = record.filter(|record| record.written == current) {
        let mut before = Document::parse(syntax, record.original.as_deref().unwrap_or_default())?;
        let changes = changes(&now, &before, keys.endmark_keys);
        if !differs(keys.others, &now, &before) {
            return Ok(Reversion::Original { original: record.original.clone(), changes });
        }
        keep(keys.others, &now, &mut before)?;
        let record = Record { original: record.original.clone(), written: before.text() };
        return Ok(Reversion::Shared { record, changes, left: Vec::new() });
    }
    let (document, left) = restore_previous(syntax, current, record, settings, keys.endmark_keys)?;
    let changes = changes(&now, &document, keys.endmark_keys);
    if let Some(record) = record {
        let original = remove_own_settings(syntax, current, record, settings, keys)?;
        if differs(keys.others, &document, &Document::parse(syntax, &original)?) {
            let record = Record { original: Some(original), written: document.text() };
            return Ok(Reversion::Shared { record, changes, left });
        }
    }
    Ok(if changes.is_empty() && left.is_empty() {
        Reversion::Unchanged
    } else {
        Reversion::OwnKeys { text: document.text(), changes, left }
    })
}

/// Returns a changed file as if Endmark had never written settings for any client.
fn remove_own_settings(
    syntax: Syntax,
    current: &str,
    record: &Record,
    settings: &[Setting],
    keys: Keys<'_>,
) -> Result<String, UnfitFile> {
    let all = [keys.endmark_keys, keys.others].concat();
    Ok(restore_previous(syntax, current, Some(record), settings, &all)?.0.text())
}

/// Whether any of these keys differs between the documents.
fn differs(paths: &[&[&str]], one: &Document, other: &Document) -> bool {
    paths.iter().any(|path| one.value(path) != other.value(path))
}

/// Sets these keys to their original state.
fn keep(paths: &[&[&str]], found: &Document, document: &mut Document) -> Result<(), UnfitFile> {
    for path in paths {
        if found.value(path) != document.value(path) {
            document.copy_from(found, path)?;
        }
    }
    Ok(())
}

/// Returns the file with Endmark's keys restored, and the keys that were changed since.
fn restore_previous(
    syntax: Syntax,
    current: &str,
    record: Option<&Record>,
    settings: &[Setting],
    owned: &[&[&str]],
) -> Result<(Document, Vec<KeptKey>), UnfitFile> {
    let original = record.and_then(|record| record.original.as_deref()).unwrap_or_default();
    let original = Document::parse(syntax, original)?;
    let ours = if let Some(record) = record {
        Document::parse(syntax, &record.written)?
    } else {
        let mut ours = Document::parse(syntax, "")?;
        settings.iter().try_for_each(|setting| ours.set(&setting.path(), &setting.value))?;
        ours
    };
    let mut document = Document::parse(syntax, current)?;
    let mut left = Vec::new();
    for path in owned {
        let key = || path.join(".");
        if let Some(leaves) = document.leaves(path) {
            let known: Vec<_> = [&ours, &original].into_iter().filter_map(|one| one.leaves(path)).collect();
            let is_theirs = |leaf: &(String, String)| !known.iter().any(|leaves| leaves.contains(leaf));
            let changed: Vec<String> =
                leaves.iter().filter(|leaf| is_theirs(leaf)).map(|(name, _)| name.clone()).collect();
            if !changed.is_empty() {
                left.push(KeptKey { key: key(), changed });
            } else if original.leaves(path).as_ref() != Some(&leaves) {
                document.copy_from(&original, path)?;
            }
            continue;
        }
        let value = document.value(path);
        if value.is_none() || value == original.value(path) {
            continue;
        }
        let expected = ours.value(path);
        if value == expected {
            document.copy_from(&original, path)?;
        } else if record.is_some() && expected.is_some() {
            left.push(KeptKey { key: key(), changed: Vec::new() });
        }
    }
    Ok((document, left))
}

fn changes(before: &Document, after: &Document, owned: &[&[&str]]) -> Vec<Change> {
    let change =
        |path: &&[&str]| Change { key: path.join("."), before: before.value(path), after: after.value(path) };
    owned.iter().map(change).filter(|change| change.before != change.after).collect()
}
