//! Lines `NAME=value`, as shells and the many readers of `.env` know them.

use super::Value;

pub(super) struct Dotenv {
    /// With their line breaks.
    lines: Vec<String>,
}

impl Dotenv {
    pub(super) fn parse(text: &str) -> Self {
        Self { lines: text.split_inclusive('\n').map(str::to_owned).collect() }
    }

    pub(super) fn text(&self) -> String {
        self.lines.concat()
    }

    pub(super) fn value(&self, path: &[&str]) -> Option<String> {
        let line = self.lines.get(self.position(path)?)?;
        let (_, value) = line.split_once('=')?;
        let value = value.trim();
        let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
        // Behind a value that has no quotes may stand a comment.
        let bare = || value.split(" #").next().unwrap_or(value).trim_end();
        Some(quoted.unwrap_or_else(bare).to_owned())
    }

    pub(super) fn set(&mut self, path: &[&str], value: &Value) {
        let Some(name) = path.last() else { return };
        let text = match value {
            Value::Text(text) => text.as_str(),
            Value::Table => "",
        };
        self.put(path, &format!("{name}={text}\n"));
    }

    pub(super) fn take_from(&mut self, other: &Self, path: &[&str]) {
        match other.position(path).and_then(|position| other.lines.get(position)) {
            Some(line) => self.put(path, line),
            None => {
                if let Some(position) = self.position(path) {
                    self.lines.remove(position);
                }
            }
        }
    }

    fn put(&mut self, path: &[&str], line: &str) {
        if let Some(found) = self.position(path).and_then(|position| self.lines.get_mut(position)) {
            let exported = if is_exported(found) && !is_exported(line) { "export " } else { "" };
            *found = format!("{exported}{line}");
            return;
        }
        if let Some(last) = self.lines.last_mut().filter(|last| !last.ends_with('\n')) {
            last.push('\n');
        }
        self.lines.push(line.to_owned());
    }

    /// Where a name is set: of several lines the last, as a shell takes it.
    fn position(&self, path: &[&str]) -> Option<usize> {
        let name = path.last()?;
        self.lines.iter().rposition(|line| {
            let line = line.trim_start();
            let line = line.strip_prefix("export ").unwrap_or(line);
            line.split_once('=').is_some_and(|(before, _)| before.trim() == *name)
        })
    }
}

fn is_exported(line: &str) -> bool {
    line.trim_start().starts_with("export ")
}
