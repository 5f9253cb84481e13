//! What a configuration file becomes, and how it comes back: decided on texts alone.

use super::client::Setting;
use super::document::{Document, Syntax, Unfit};

/// What is kept beside a file that was written, so that it can come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The file as it was found; none if there was none.
    pub original: Option<String>,
    /// The file as it was left.
    pub written: String,
}

impl Record {
    /// Whether the file was there before, though nothing is kept of it: more was left than keys of Endmark's.
    pub fn has_lost_its_original(&self, syntax: Syntax, keys: Keys<'_>) -> Result<bool, Unfit> {
        if self.original.is_some() {
            return Ok(false);
        }
        let mut rest = Document::parse(syntax, &self.written)?;
        let nothing = Document::parse(syntax, "")?;
        for path in [keys.own, keys.others].concat() {
            rest.take_from(&nothing, path)?;
        }
        Ok(rest.text().contains(|character: char| !character.is_whitespace() && !"{}".contains(character)))
    }
}

/// One key, before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The names that lead to it, with dots between them.
    /// Its key.
    pub key: String,
    /// What it was; none where it was not set.
    pub before: Option<String>,
    /// What it is now.
    pub after: Option<String>,
}

/// A key of Endmark's that somebody has set to something else since: it stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Its key.
    pub key: String,
    /// What of a table is not as Endmark left it. The table stays whole: half of it could be none to its client.
    pub changed: Vec<String>,
}

/// What writing comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Revision {
    /// The file says it all already.
    Same,
    /// It is to be written.
    New {
        /// What is kept beside the file.
        record: Record,
        /// What changes.
        changes: Vec<Change>,
    },
}

/// What taking back comes to.
#[derive(Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is what it is called in every variant")]
pub enum Reversion {
    /// There is nothing of Endmark's in the file.
    Nothing,
    /// The file was not touched since: it becomes what it was, or goes.
    Exactly { original: Option<String>, changes: Vec<Change> },
    /// It holds what other clients need, too: only this client's keys go back, and what is kept beside it is for theirs.
    Shared { record: Record, changes: Vec<Change>, left: Vec<Left> },
    /// It was touched since: only Endmark's keys go back.
    OwnKeys {
        text: String,
        changes: Vec<Change>,
        /// Keys of Endmark's that somebody has set to something else since; they stay.
        left: Vec<Left>,
    },
}

/// The keys of Endmark's in a file.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    /// Those of the client that is at hand, each with all below it.
    pub own: &'a [&'a [&'a str]],
    /// Those of other clients that can share a file with it.
    pub others: &'a [&'a [&'a str]],
}

/// What a file becomes that has to say this. A file that was written before is revised from what it was before that, so
/// that taking back once is enough; what was written for other clients stays in it.
pub fn revise(
    syntax: Syntax,
    current: Option<&str>,
    record: Option<&Record>,
    settings: &[Setting],
    keys: Keys<'_>,
) -> Result<Revision, Unfit> {
    let found = Document::parse(syntax, current.unwrap_or_default())?;
    let original = match (current, record) {
        (Some(current), Some(record)) if current == record.written => record.original.clone(),
        (Some(current), Some(record)) => Some(without_ours(syntax, current, record, settings, keys)?),
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

/// What a file becomes that is to have nothing of Endmark's any more. `settings` is what would be written now: where no
/// record says what was written, a key counts as Endmark's that has just that value.
pub fn revert(
    syntax: Syntax,
    current: &str,
    record: Option<&Record>,
    settings: &[Setting],
    keys: Keys<'_>,
) -> Result<Reversion, Unfit> {
    let now = Document::parse(syntax, current)?;
    if let Some(record) = record.filter(|record| record.written == current) {
        let mut before = Document::parse(syntax, record.original.as_deref().unwrap_or_default())?;
        let changes = changes(&now, &before, keys.own);
        if !differs(keys.others, &now, &before) {
            return Ok(Reversion::Exactly { original: record.original.clone(), changes });
        }
        keep(keys.others, &now, &mut before)?;
        let record = Record { original: record.original.clone(), written: before.text() };
        return Ok(Reversion::Shared { record, changes, left: Vec::new() });
    }
    let (document, left) = given_back(syntax, current, record, settings, keys.own)?;
    let changes = changes(&now, &document, keys.own);
    if let Some(record) = record {
        let original = without_ours(syntax, current, record, settings, keys)?;
        if differs(keys.others, &document, &Document::parse(syntax, &original)?) {
            let record = Record { original: Some(original), written: document.text() };
            return Ok(Reversion::Shared { record, changes, left });
        }
    }
    Ok(if changes.is_empty() && left.is_empty() {
        Reversion::Nothing
    } else {
        Reversion::OwnKeys { text: document.text(), changes, left }
    })
}

/// A file that somebody has touched, as it would be if Endmark had written nothing into it for any client.
fn without_ours(
    syntax: Syntax,
    current: &str,
    record: &Record,
    settings: &[Setting],
    keys: Keys<'_>,
) -> Result<String, Unfit> {
    let all = [keys.own, keys.others].concat();
    Ok(given_back(syntax, current, Some(record), settings, &all)?.0.text())
}

/// Whether any of these keys is something else in another document.
fn differs(paths: &[&[&str]], one: &Document, other: &Document) -> bool {
    paths.iter().any(|path| one.value(path) != other.value(path))
}

/// Makes these keys what they are in the document that was found.
fn keep(paths: &[&[&str]], found: &Document, document: &mut Document) -> Result<(), Unfit> {
    for path in paths {
        if found.value(path) != document.value(path) {
            document.take_from(found, path)?;
        }
    }
    Ok(())
}

/// The file with Endmark's keys as they were before, and those that are Endmark's no more.
fn given_back(
    syntax: Syntax,
    current: &str,
    record: Option<&Record>,
    settings: &[Setting],
    owned: &[&[&str]],
) -> Result<(Document, Vec<Left>), Unfit> {
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
                left.push(Left { key: key(), changed });
            } else if original.leaves(path).as_ref() != Some(&leaves) {
                document.take_from(&original, path)?;
            }
            continue;
        }
        let value = document.value(path);
        if value.is_none() || value == original.value(path) {
            continue;
        }
        let expected = ours.value(path);
        if value == expected {
            document.take_from(&original, path)?;
        } else if record.is_some() && expected.is_some() {
            left.push(Left { key: key(), changed: Vec::new() });
        }
    }
    Ok((document, left))
}

fn changes(before: &Document, after: &Document, owned: &[&[&str]]) -> Vec<Change> {
    let change =
        |path: &&[&str]| Change { key: path.join("."), before: before.value(path), after: after.value(path) };
    owned.iter().map(change).filter(|change| change.before != change.after).collect()
}
