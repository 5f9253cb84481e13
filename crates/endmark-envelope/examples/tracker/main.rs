//! An issue tracker over a SQLite file. Each answer is one envelope; see the crate's README.

#![expect(clippy::result_large_err, reason = "a command makes one error in its life")]

mod arguments;
mod store;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use arguments::{Arguments, Command};
use endmark_envelope::{Checked, Envelope, ErrorBody, FieldRule, Pages, run};
use serde_json::{Value, json};
use store::{NewIssue, Store, store_failure};

fn main() -> ExitCode {
    run(|| answer(Arguments::read(std::env::args_os().skip(1))?))
}

fn answer(arguments: Arguments) -> Result<Envelope<Value>, ErrorBody> {
    let envelope = match arguments.command {
        Command::Create { title, body, labels } => {
            // Check the limits before opening the file.
            let issue = Checked::new(NewIssue { title, body, labels })?;
            let number = Store::open(&arguments.file)?.create(&issue)?;
            Envelope::success(json!({"number": number}))
        }
        Command::Show { number } => {
            let issue = Store::open(&arguments.file)?.show(number)?;
            // A value whose length is exactly its declared limit was probably cut.
            Envelope::from_backend(issue).into_json().map_err(store_failure)?
        }
        Command::List { label, items, cursor } => {
            list(&arguments.file, label.as_deref(), items, cursor.as_deref())?
        }
        Command::Crash => crash(),
        Command::Wait { seconds } => {
            thread::sleep(Duration::from_secs(seconds));
            Envelope::success(json!({"waited_seconds": seconds}))
        }
    };
    Ok(match arguments.max_response_bytes {
        Some(bytes) => envelope.with_max_response_bytes(bytes),
        None => envelope,
    })
}

fn list(
    file: &std::path::Path,
    label: Option<&str>,
    items: usize,
    cursor: Option<&str>,
) -> Result<Envelope<Value>, ErrorBody> {
    let pages = Pages::of("issues").filtered_by("label", label.unwrap_or_default()).with_items(items);
    let after: Option<i64> = pages.decode_cursor(cursor)?;
    let rows = Store::open(file)?.list(label, after.unwrap_or(0), pages.rows_to_fetch())?;
    let page = pages.page(rows, |row| row.number).map_err(store_failure)?;
    // The database returns the beginning and the length of each body.
    let excerpt = FieldRule {
        bytes_in: Some("body_bytes".to_owned()),
        chars_in: Some("body_chars".to_owned()),
        ..FieldRule::default()
    };
    let places = "data.items[*].excerpt".parse().map_err(store_failure)?;
    Envelope::success(page).with_rule(places, excerpt).into_json().map_err(store_failure)
}

#[expect(clippy::panic, reason = "it shows what a panic answers")]
fn crash() -> ! {
    panic!("the tracker was asked to crash")
}
