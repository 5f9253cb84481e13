//! The command line arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use endmark_envelope::{DEFAULT_PAGE_ITEMS, ErrorBody};

const USAGE: &str = "Usage: tracker [--file FILE] [--max-response-bytes N] \
    create --title T [--body B] [--label L]… | show --number N | list [--label L] [--items N] [--cursor C] | \
    wait --seconds N | crash";

/// The parsed command line.
pub(crate) struct Arguments {
    pub(crate) file: PathBuf,
    pub(crate) max_response_bytes: Option<usize>,
    pub(crate) command: Command,
}

/// One of the commands.
pub(crate) enum Command {
    Create { title: String, body: Option<String>, labels: Vec<String> },
    Show { number: i64 },
    List { label: Option<String>, items: usize, cursor: Option<String> },
    Wait { seconds: u64 },
    Crash,
}

/// Options in the order of the command line.
struct Options(Vec<(String, String)>);

impl Arguments {
    pub(crate) fn read(arguments: impl Iterator<Item = OsString>) -> Result<Self, ErrorBody> {
        let mut words = arguments.map(|word| {
            word.into_string().map_err(|word| usage_error(format!("`{}` is not UTF-8", word.display())))
        });
        let (mut name, mut options) = (None, Vec::new());
        while let Some(word) = words.next().transpose()? {
            match word.strip_prefix("--") {
                Some(option) => {
                    let value = words.next().transpose()?;
                    let value = value.ok_or_else(|| usage_error(format!("`{word}` has no value")))?;
                    options.push((option.to_owned(), value));
                }
                None if name.is_none() => name = Some(word),
                None => return Err(usage_error(format!("`{word}` is one word too many"))),
            }
        }
        let mut options = Options(options);
        let file = options.take_text("file").unwrap_or_else(|| "issues.db".to_owned()).into();
        let max_response_bytes = options.take_number("max-response-bytes")?;
        let command = match name.as_deref() {
            Some("create") => Command::Create {
                title: options.take_text("title").ok_or_else(|| usage_error("`--title` is missing"))?,
                body: options.take_text("body"),
                labels: std::iter::from_fn(|| options.take_text("label")).collect(),
            },
            Some("show") => Command::Show {
                number: options.take_number("number")?.ok_or_else(|| usage_error("`--number` is missing"))?,
            },
            Some("list") => Command::List {
                label: options.take_text("label"),
                items: options.take_number("items")?.unwrap_or(DEFAULT_PAGE_ITEMS),
                cursor: options.take_text("cursor"),
            },
            Some("wait") => Command::Wait { seconds: options.take_number("seconds")?.unwrap_or(1) },
            Some("crash") => Command::Crash,
            Some(other) => return Err(usage_error(format!("there is no command `{other}`"))),
            None => return Err(usage_error("a command is missing")),
        };
        match options.0.first() {
            None => Ok(Self { file, max_response_bytes, command }),
            Some((option, _)) => Err(usage_error(format!("`--{option}` has no place here"))),
        }
    }
}

impl Options {
    /// Returns the value of the first option of this name.
    fn take_text(&mut self, name: &str) -> Option<String> {
        let position = self.0.iter().position(|(option, _)| option == name)?;
        Some(self.0.remove(position).1)
    }

    fn take_number<N: std::str::FromStr>(&mut self, name: &str) -> Result<Option<N>, ErrorBody> {
        let parse = |text: String| {
            text.parse().map_err(|_| usage_error(format!("`--{name}` has to be a whole number")))
        };
        self.take_text(name).map(parse).transpose()
    }
}

fn usage_error(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new("usage", 2, message).with_hint(USAGE)
}
