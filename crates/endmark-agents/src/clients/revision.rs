//! Decides how a configuration file is changed and restored. The functions work on texts and do not access
//! files.

use super::client::RequiredSetting;
use super::document::{ConfigDocument, Syntax, UneditableFile};

/// The record of a file that Endmark has written. The original can be restored from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRecord {
    /// The original text. `None` if there was no file.
    pub original: Option<String>,
    /// The text that Endmark has written.
    pub written: String,
}

impl WriteRecord {
    /// Whether the original is lost: it is not recorded, although the written file has more than Endmark's
    /// keys.
    pub fn has_lost_its_original(
        &self,
        syntax: Syntax,
        keys: ConfigKeys<'_>,
    ) -> Result<bool, UneditableFile> {
        if self.original.is_some() {
            return Ok(false);
        }
        let mut rest = ConfigDocument::parse(syntax, &self.written)?;
        let nothing = ConfigDocument::parse(syntax, "")?;
        for path in [keys.endmark_keys, keys.other_client_keys].concat() {
            rest.copy_from(&nothing, path)?;
        }
        Ok(rest.text().contains(|character: char| !character.is_whitespace() && !"{}".contains(character)))
    }
}

/// A key with its value before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    /// The dotted path of the key.
    pub key: String,
    /// The previous value. `None` if the key was not set.
    pub before: Option<String>,
    /// The new value. `None` if the key is no longer set.
    pub after: Option<String>,
}

/// A key of Endmark that is kept because another program has changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptKey {
    /// The dotted path of the key.
    pub key: String,
    /// The names of the changed values, if the key is a table. The whole table is kept, because a part of it
    /// could be invalid for its client.
    pub changed: Vec<String>,
}

/// The result of [`revise`].
#[derive(Debug, PartialEq, Eq)]
pub enum RevisionResult {
    /// The file already has all settings.
    Unchanged,
    /// The file must be written.
    New {
        /// The record of the new file.
        record: WriteRecord,
        /// The changed keys.
        changes: Vec<KeyChange>,
    },
}

/// The result of [`revert`].
#[derive(Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields have the same meaning in every variant")]
pub enum ReversionResult {
    /// The file has no settings of Endmark.
    Unchanged,
    /// No other program has changed the file, so the original is restored, or the file is removed.
    Original { original: Option<String>, changes: Vec<KeyChange> },
    /// Other clients also use the file, so only this client's keys are restored, and the record is kept for
    /// the others.
    Shared { record: WriteRecord, changes: Vec<KeyChange>, left: Vec<KeptKey> },
    /// Another program has changed the file, so only Endmark's keys are restored.
    OwnKeys {
        text: String,
        changes: Vec<KeyChange>,
        /// Keys of Endmark that another program has changed, so they are kept.
        left: Vec<KeptKey>,
    },
}

/// The keys that Endmark may set in a file.
#[derive(Clone, Copy)]
pub struct ConfigKeys<'a> {
    /// The keys of this client, including all keys below them.
    pub endmark_keys: &'a [&'a [&'a str]],
    /// The keys of other clients that may share the file.
    pub other_client_keys: &'a [&'a [&'a str]],
}

/// Returns the file with these settings. The settings of other clients are kept.
///
/// If Endmark has already written the file, the new file is derived from the original, so a single undo
/// restores it.
pub fn revise(
    syntax: Syntax,
    current: Option<&str>,
    record: Option<&WriteRecord>,
    settings: &[RequiredSetting],
    keys: ConfigKeys<'_>,
) -> Result<RevisionResult, UneditableFile> {
    let found = ConfigDocument::parse(syntax, current.unwrap_or_default())?;
    let original = match (current, record) {
        (Some(current), Some(record)) if current == record.written => record.original.clone(),
        (Some(current), Some(record)) => Some(remove_own_settings(syntax, current, record, settings, keys)?),
        (current, _) => current.map(str::to_owned),
    };
    let mut document = ConfigDocument::parse(syntax, original.as_deref().unwrap_or_default())?;
    copy_keys(keys.other_client_keys, &found, &mut document)?;
    for setting in settings {
        document.set(&setting.path(), &setting.value)?;
    }
    let changes: Vec<KeyChange> = settings
        .iter()
        .map(|setting| KeyChange {
            key: setting.path.join("."),
            before: found.value(&setting.path()),
            after: document.value(&setting.path()),
        })
        .filter(|change| change.before != change.after)
        .collect();
    if changes.is_empty() {
        return Ok(RevisionResult::Unchanged);
    }
    Ok(RevisionResult::New { record: WriteRecord { original, written: document.text() }, changes })
}

/// Returns the file without Endmark's settings.
///
/// `settings` are the settings that a write would now contain. If there is no record, a key belongs to
/// Endmark if it has exactly the value in `settings`.
pub fn revert(
    syntax: Syntax,
    current: &str,
    record: Option<&WriteRecord>,
    settings: &[RequiredSetting],
    keys: ConfigKeys<'_>,
) -> Result<ReversionResult, UneditableFile> {
    let now = ConfigDocument::parse(syntax, current)?;
    if let Some(record) = record.filter(|record| record.written == current) {
        let mut before = ConfigDocument::parse(syntax, record.original.as_deref().unwrap_or_default())?;
        let changes = key_changes(&now, &before, keys.endmark_keys);
        if !any_key_differs(keys.other_client_keys, &now, &before) {
            return Ok(ReversionResult::Original { original: record.original.clone(), changes });
        }
        copy_keys(keys.other_client_keys, &now, &mut before)?;
        let record = WriteRecord { original: record.original.clone(), written: before.text() };
        return Ok(ReversionResult::Shared { record, changes, left: Vec::new() });
    }
    let (document, left) = restore_previous(syntax, current, record, settings, keys.endmark_keys)?;
    let changes = key_changes(&now, &document, keys.endmark_keys);
    if let Some(record) = record {
        let original = remove_own_settings(syntax, current, record, settings, keys)?;
        if any_key_differs(keys.other_client_keys, &document, &ConfigDocument::parse(syntax, &original)?) {
            let record = WriteRecord { original: Some(original), written: document.text() };
            return Ok(ReversionResult::Shared { record, changes, left });
        }
    }
    Ok(if changes.is_empty() && left.is_empty() {
        ReversionResult::Unchanged
    } else {
        ReversionResult::OwnKeys { text: document.text(), changes, left }
    })
}

/// Returns the file as it would be now if Endmark had never written settings for any client.
fn remove_own_settings(
    syntax: Syntax,
    current: &str,
    record: &WriteRecord,
    settings: &[RequiredSetting],
    keys: ConfigKeys<'_>,
) -> Result<String, UneditableFile> {
    let all = [keys.endmark_keys, keys.other_client_keys].concat();
    Ok(restore_previous(syntax, current, Some(record), settings, &all)?.0.text())
}

/// Whether the documents have different values for any of these keys.
fn any_key_differs(paths: &[&[&str]], one: &ConfigDocument, other: &ConfigDocument) -> bool {
    paths.iter().any(|path| one.value(path) != other.value(path))
}

/// Copies the values of these keys from `found` to `document`.
fn copy_keys(
    paths: &[&[&str]],
    found: &ConfigDocument,
    document: &mut ConfigDocument,
) -> Result<(), UneditableFile> {
    for path in paths {
        if found.value(path) != document.value(path) {
            document.copy_from(found, path)?;
        }
    }
    Ok(())
}

/// Returns the file with Endmark's keys restored, and the keys that are kept because another program changed
/// them.
fn restore_previous(
    syntax: Syntax,
    current: &str,
    record: Option<&WriteRecord>,
    settings: &[RequiredSetting],
    owned: &[&[&str]],
) -> Result<(ConfigDocument, Vec<KeptKey>), UneditableFile> {
    let original = record.and_then(|record| record.original.as_deref()).unwrap_or_default();
    let original = ConfigDocument::parse(syntax, original)?;
    let ours = if let Some(record) = record {
        ConfigDocument::parse(syntax, &record.written)?
    } else {
        let mut ours = ConfigDocument::parse(syntax, "")?;
        settings.iter().try_for_each(|setting| ours.set(&setting.path(), &setting.value))?;
        ours
    };
    let mut document = ConfigDocument::parse(syntax, current)?;
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

fn key_changes(before: &ConfigDocument, after: &ConfigDocument, owned: &[&[&str]]) -> Vec<KeyChange> {
    let change = |path: &&[&str]| KeyChange {
        key: path.join("."),
        before: before.value(path),
        after: after.value(path),
    };
    owned.iter().map(change).filter(|change| change.before != change.after).collect()
}
